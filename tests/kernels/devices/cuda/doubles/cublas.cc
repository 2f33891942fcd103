// The double of cuBLAS.
#include <cublas_v2.h>

#include "tests/kernels/devices/cuda/doubles/matrix_product.h"

namespace doubles = memfathom::doubles;
using doubles::create;
using doubles::destroy;
using doubles::kept;
using doubles::multiply;
using doubles::refuse_blas;

namespace {

struct BlasState {
  bool has_stream = false;
  void* workspace = nullptr;  // null: the library's own
  std::size_t workspace_size = 0;
};

// Not an error of cuBLAS, but one of ours: the default stream is not ordered with the device's own.
void note_default_stream(const char* function, cublasHandle_t handle) {
  if (!kept<BlasState>()[handle].has_stream)
    doubles::refuse(function, "the handle runs on the default stream", 0);
}

cublasStatus_t check_handle(const char* function, cublasHandle_t handle) {
  if (!doubles::alive("cublas", handle))
    return refuse_blas(function, "the handle does not exist", CUBLAS_STATUS_NOT_INITIALIZED);
  return doubles::sticky_error() != 0 ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

// A product writes into the workspace that was handed over, whether it still exists or not.
cublasStatus_t check_product(const char* function, cublasHandle_t handle) {
  if (const cublasStatus_t status = check_handle(function, handle); status != CUBLAS_STATUS_SUCCESS)
    return status;
  note_default_stream(function, handle);
  const BlasState& state = kept<BlasState>()[handle];
  if (state.workspace_size > 0 &&
      doubles::host_view(state.workspace, state.workspace_size) == nullptr)
    return refuse_blas(function, "the workspace is gone", CUBLAS_STATUS_EXECUTION_FAILED);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  return create("cublasCreate", "cublas", handle, BlasState{});
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return destroy<BlasState>("cublasDestroy", "cublas", handle);
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (const int injected = doubles::enter("cublasSetStream"))
    return static_cast<cublasStatus_t>(injected);
  if (!doubles::alive("stream", stream))
    return refuse_blas("cublasSetStream", "the stream does not exist");
  kept<BlasState>()[handle] = {.has_stream = true};  // the own workspace is back
  return check_handle("cublasSetStream", handle);
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  if (const int injected = doubles::enter("cublasSetMathMode"))
    return static_cast<cublasStatus_t>(injected);
  if (mode == CUBLAS_TF32_TENSOR_OP_MATH)
    doubles::refuse("cublasSetMathMode", "TF32 was switched on", 0);
  return check_handle("cublasSetMathMode", handle);
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t size) {
  if (const int injected = doubles::enter("cublasSetWorkspace"))
    return static_cast<cublasStatus_t>(injected);
  if (reinterpret_cast<std::uint64_t>(workspace) % 256 != 0)
    return refuse_blas("cublasSetWorkspace", "the workspace is misaligned");
  if (size > 0 && doubles::host_view(workspace, size) == nullptr) {
    return refuse_blas("cublasSetWorkspace", "the workspace is not device memory of that size");
  }
  BlasState& state = kept<BlasState>()[handle];
  state.workspace = workspace;
  state.workspace_size = size;
  return check_handle("cublasSetWorkspace", handle);
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  *value = type == MAJOR_VERSION ? 13 : type == MINOR_VERSION ? 1 : 2;
  return static_cast<cublasStatus_t>(doubles::enter("cublasGetProperty"));
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_OTHER";
  }
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void* alpha,
                            const void* A, cudaDataType Atype, int lda, const void* B,
                            cudaDataType Btype, int ldb, const void* beta, void* C,
                            cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
                            cublasGemmAlgo_t) {
  if (const int injected = doubles::enter("cublasGemmEx"))
    return static_cast<cublasStatus_t>(injected);
  if (const cublasStatus_t status = check_product("cublasGemmEx", handle);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  return multiply("cublasGemmEx", {m,
                                   n,
                                   k,
                                   1,
                                   {A, transa, Atype, lda, 0, 0, 0},
                                   {B, transb, Btype, ldb, 0, 0, 0},
                                   {C, CUBLAS_OP_N, Ctype, ldc, 0, 0, 0},
                                   computeType,
                                   alpha,
                                   beta,
                                   nullptr});
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const void* alpha, const void* A, cudaDataType Atype,
                                          int lda, long long int strideA, const void* B,
                                          cudaDataType Btype, int ldb, long long int strideB,
                                          const void* beta, void* C, cudaDataType Ctype, int ldc,
                                          long long int strideC, int batchCount,
                                          cublasComputeType_t computeType, cublasGemmAlgo_t) {
  const char* function = "cublasGemmStridedBatchedEx";
  if (const int injected = doubles::enter(function)) return static_cast<cublasStatus_t>(injected);
  if (const cublasStatus_t status = check_product(function, handle);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  return multiply(function, {m,
                             n,
                             k,
                             batchCount,
                             {A, transa, Atype, lda, strideA, 0, 0},
                             {B, transb, Btype, ldb, strideB, 0, 0},
                             {C, CUBLAS_OP_N, Ctype, ldc, strideC, 0, 0},
                             computeType,
                             alpha,
                             beta,
                             nullptr});
}

}  // extern "C"
