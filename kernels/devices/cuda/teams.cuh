// teams: the kernels and the teams of threads that they form: warps with shuffles, blocks with
// shared memory and barriers. The only device code that is not plain arithmetic.
//
// Compiled by nvcc for a GPU (grid.cuh) and, in the tests, for real threads of the host.
#pragma once

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

}  // namespace memfathom::cuda
