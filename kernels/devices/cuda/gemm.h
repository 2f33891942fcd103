// Gemm: matrix products on cuBLAS, with a bias on cuBLASLt as PyTorch does it.
#pragma once

#include <cstddef>

#include "kernels/devices/cuda/gemm_layout.h"
#include "kernels/devices/cuda/handles.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cuda {

// What is left to the caller: to add the bias itself before the product (cuBLASLt does not take
// this combination).
enum class BiasPath { kNone, kEpilogue, kBefore };

// Handles are created with the first product and again after a failed creation. Not for two threads
// at once.
class Gemm {
 public:
  explicit Gemm(cudaStream_t stream) : stream_(stream) {}

  // Device memory that cuBLAS and cuBLASLt may use from now on, 256-byte aligned as blocks of the
  // allocator are.
  void set_workspace(void* workspace, std::size_t bytes);

  static BiasPath bias_path(const GemmCall& call, const GemmLayout& layout);
  // out = alpha a.b + beta out, and + bias when the path is kEpilogue. The status is of the product
  // itself; failing to prepare it throws. CUBLAS_STATUS_NOT_SUPPORTED of run_with_bias: cuBLASLt
  // has no algorithm for it, nothing was done, and the bias is left to the caller as with kBefore.
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
