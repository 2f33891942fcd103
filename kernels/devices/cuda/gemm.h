// Gemm: matrix products on cuBLAS and, with a bias, on cuBLASLt, as in PyTorch.
#pragma once

#include <cstddef>

#include "kernels/devices/cuda/gemm_layout.h"
#include "kernels/devices/cuda/handles.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cuda {

// kBefore: the caller adds the bias before the product, because cuBLASLt does not support the
// combination.
enum class BiasPath { kNone, kEpilogue, kBefore };

// Creates handles with the first product and retries after a failure. Not thread-safe.
class Gemm {
 public:
  explicit Gemm(cudaStream_t stream) : stream_(stream) {}

  // Device memory for cuBLAS and cuBLASLt from now on, 256-byte aligned like the allocator's
  // blocks.
  void set_workspace(void* workspace, std::size_t bytes);

  static BiasPath bias_path(const GemmCall& call, const GemmLayout& layout);
  // out = alpha a.b + beta out, and + bias if the path is kEpilogue. Returns the product's status;
  // throws if the preparation fails. CUBLAS_STATUS_NOT_SUPPORTED from run_with_bias: cuBLASLt has
  // no algorithm, nothing was done, and the caller adds the bias as with kBefore.
  cublasStatus_t run(const GemmCall& call, const GemmLayout& layout, double beta);
  cublasStatus_t run_with_bias(const GemmCall& call, const GemmLayout& layout);

 private:
  cublasHandle_t blas();

  cudaStream_t stream_;
  CublasHandle blas_;
  CublasLtHandle blas_lt_;
  void* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace memfathom::cuda
