// GridExecutor: runs work items and row teams on a GPU. The only code that deals with grids,
// blocks, warps and shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/devices/cuda/work/team.h"
#include "kernels/devices/element/math.h"

namespace memfathom::cuda {

constexpr int kBlock = 256;
constexpr int kWarp = 32;
constexpr int kWarps = kBlock / kWarp;
// Enough blocks to fill any GPU; a grid-stride loop covers the rest of the work.
constexpr std::int64_t kMaxBlocks = 65535;

template <typename T>
__device__ T warp_sum(T value) {
  for (int step = kWarp / 2; step > 0; step /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

template <typename T>
__device__ T warp_max(T value) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    value = element::math::max(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  return value;
}

struct WarpTeam {
  static constexpr int kSize = kWarp;
  __device__ int lane() const { return int(threadIdx.x) % kWarp; }
  template <typename T>
  __device__ T sum(T value) const {
    return warp_sum(value);
  }
  template <typename T>
  __device__ T max(T value) const {
    return warp_max(value);
  }
};

struct BlockTeam {
  static constexpr int kSize = kBlock;
  void* shared;  // kWarps elements of the widest type

  __device__ int lane() const { return int(threadIdx.x); }
  template <typename T>
  __device__ T sum(T value) const {
    T total = gather(warp_sum(value), 0);
    for (int w = 1; w < kWarps; ++w) total += static_cast<T*>(shared)[w];
    __syncthreads();
    return total;
  }
  template <typename T>
  __device__ T max(T value) const {
    T top = gather(warp_max(value), 0);
    for (int w = 1; w < kWarps; ++w) top = element::math::max(top, static_cast<T*>(shared)[w]);
    __syncthreads();
    return top;
  }

 private:
  template <typename T>
  __device__ T gather(T of_warp, int first) const {
    if (threadIdx.x % kWarp == 0) static_cast<T*>(shared)[threadIdx.x / kWarp] = of_warp;
    __syncthreads();
    return static_cast<T*>(shared)[first];
  }
};

template <typename Work>
__global__ void __launch_bounds__(kBlock)
    each_kernel(const __grid_constant__ Work work, std::int64_t n) {
  const std::int64_t step = std::int64_t(gridDim.x) * kBlock;
  for (std::int64_t i = std::int64_t(blockIdx.x) * kBlock + threadIdx.x; i < n; i += step) work(i);
}

template <typename Work>
__global__ void __launch_bounds__(kBlock)
    rows_kernel(const __grid_constant__ Work work, std::int64_t rows) {
  __shared__ double shared[kWarps];
  const BlockTeam team{shared};
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) work(team, r);
}

template <typename Work>
__global__ void __launch_bounds__(kBlock)
    narrow_rows_kernel(const __grid_constant__ Work work, std::int64_t rows) {
  const WarpTeam team;
  const std::int64_t step = std::int64_t(gridDim.x) * kWarps;
  for (std::int64_t r = std::int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp; r < rows;
       r += step)
    work(team, r);
}

class GridExecutor {
 public:
  explicit GridExecutor(cudaStream_t stream) : stream_(stream) {}

  template <typename Work>
  void each(std::int64_t n, const Work& work) {
    if (n > 0) each_kernel<<<blocks((n + kBlock - 1) / kBlock), kBlock, 0, stream_>>>(work, n);
  }
  template <typename Work>
  void rows(std::int64_t n, const Work& work) {
    if (n > 0) rows_kernel<<<blocks(n), kBlock, 0, stream_>>>(work, n);
  }
  template <typename Work>
  void narrow_rows(std::int64_t n, const Work& work) {
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
