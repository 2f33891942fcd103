// Transforms: Fourier transforms of the cpu device, in fp32, with a cache of plans.
#pragma once

#include <memory>

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

// Use only one at a time in a process: FFTW's planner is not thread-safe.
class Transforms {
 public:
  Transforms();
  ~Transforms();

  // The input of a complex-to-real transform is overwritten on the way, so it works on a copy.
  static Bytes workspace(const FftQuery& query);
  void run(const FftCall& call);

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace memfathom::cpu
