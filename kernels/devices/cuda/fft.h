// Fft: Fourier transforms on cuFFT; the caller provides work areas; caches plans.
#pragma once

#include <cufft.h>

#include <cstddef>
#include <optional>

#include "kernels/devices/cuda/plan_cache.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cuda {

class FftPlan {
 public:
  // Creates the plan without its own work area. Throws Error(kEnvironment) without leaks.
  FftPlan(const FftQuery& query, cudaStream_t stream);
  FftPlan(FftPlan&& other) noexcept;
  FftPlan& operator=(FftPlan&&) = delete;
  ~FftPlan();

  cufftHandle handle() const { return *handle_; }
  std::size_t workspace() const { return workspace_; }

 private:
  std::optional<cufftHandle> handle_;
  std::size_t workspace_ = 0;
};

class Fft {
 public:
  // Caches at most `plans` plans: each holds device memory for its twiddle factors.
  explicit Fft(cudaStream_t stream, std::size_t plans = 64) : stream_(stream), plans_(plans) {}

  std::size_t workspace(const FftQuery& query) { return plan(query).workspace(); }
  // Returns the transform's status; throws if the preparation fails. The caller applies the scale.
  cufftResult run(const FftCall& call);

 private:
  FftPlan& plan(const FftQuery& query);

  cudaStream_t stream_;
  PlanCache<FftPlan> plans_;
};

// The plan a call needs. Throws Error(kInternal) for operands that are not dense.
FftQuery query_of(const FftCall& call);

}  // namespace memfathom::cuda
