// Shared by the doubles of cuBLAS and cuBLASLt: handles and a host product.
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <map>
#include <string>

#include "tests/kernels/devices/cuda/doubles/control.h"

namespace memfathom::doubles {

inline cublasStatus_t refuse_blas(const char* function, const std::string& why,
                                  cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE) {
  refuse(function, why, status);
  return status;
}

// Opaque descriptors: what the library would keep behind them.
template <typename Kept>
std::map<const void*, Kept>& kept() {
  static std::map<const void*, Kept> all;
  return all;
}

template <typename Kept, typename Handle>
cublasStatus_t create(const char* function, const char* kind, Handle* handle, const Kept& value) {
  if (const int injected = enter(function)) return static_cast<cublasStatus_t>(injected);
  *handle = static_cast<Handle>(new_handle());
  created(kind, *handle);
  kept<Kept>()[*handle] = value;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Kept>
cublasStatus_t destroy(const char* function, const char* kind, const void* handle) {
  enter(function);
  kept<Kept>().erase(handle);
  return destroyed(kind, handle) ? CUBLAS_STATUS_SUCCESS
                                 : refuse_blas(function, "it does not exist");
}

// One matrix of a product.
struct Side {
  const void* data = nullptr;
  cublasOperation_t operation = CUBLAS_OP_N;
  cudaDataType type = CUDA_R_32F;
  std::int64_t leading = 0;
  std::int64_t batch_stride = 0;
  std::int64_t rows = 0, columns = 0;  // as stored: before the operation
};

struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  Side a, b, c;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  const void* alpha = nullptr;
  const void* beta = nullptr;
  const void* bias = nullptr;
};

// Refused where the libraries refuse it.
cublasStatus_t multiply(const char* function, Product p);

}  // namespace memfathom::doubles
