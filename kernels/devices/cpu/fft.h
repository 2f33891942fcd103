// FftwTransforms: Fourier transforms on FFTW, in fp32, with a cache of plans.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

// FFTW's planner is not thread-safe: use only one FftwTransforms at a time in a process.
class FftwTransforms {
 public:
  FftwTransforms();
  ~FftwTransforms();

  // FFTW overwrites the input of a complex-to-real transform, so it works on a copy.
  static Bytes workspace(const FftQuery& query);
  void run(const FftCall& call);

 private:
  struct Plan;
  Plan& plan(const FftCall& call, std::int64_t batch);

  std::map<std::string, std::unique_ptr<Plan>> plans_;
};

}  // namespace memfathom::cpu
