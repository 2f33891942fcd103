// GridExecutor: runs work items and row teams on a GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/devices/cuda/teams.cuh"

namespace memfathom::cuda {

class GridExecutor {
 public:
  explicit GridExecutor(cudaStream_t stream) : stream_(stream) {}

  // Work is passed by value, and every CUDA passes 4 KiB; the count comes with it.
  template <typename Work>
  static constexpr bool kFits = sizeof(Work) + sizeof(std::int64_t) <= 4096;

  template <typename Work>
  void each(std::int64_t n, const Work& work) {
    static_assert(kFits<Work>);
    if (n > 0) each_kernel<<<blocks((n + kBlock - 1) / kBlock), kBlock, 0, stream_>>>(work, n);
  }
  template <typename Work>
  void rows(std::int64_t n, const Work& work) {
    static_assert(kFits<Work>);
    if (n > 0) rows_kernel<<<blocks(n), kBlock, 0, stream_>>>(work, n);
  }
  template <typename Work>
  void narrow_rows(std::int64_t n, const Work& work) {
    static_assert(kFits<Work>);
    if (n > 0)
      narrow_rows_kernel<<<blocks((n + kWarps - 1) / kWarps), kBlock, 0, stream_>>>(work, n);
  }
  cudaError_t status() const { return cudaGetLastError(); }

 private:
  static unsigned int blocks(std::int64_t wanted) {
    return unsigned(wanted < kMaxBlocks ? wanted : kMaxBlocks);
  }
  cudaStream_t stream_;
};

template <typename Call>
cudaError_t launch_on_grid(const Call& call, cudaStream_t stream) {
  GridExecutor executor(stream);
  submit(executor, call);
  return executor.status();
}

}  // namespace memfathom::cuda
