#include "kernels/devices/cuda/handles.h"

#include "kernels/devices/cuda/cudnn/descriptor.h"
#include "kernels/devices/cuda/status.h"

namespace memfathom::cuda {

Stream make_stream() {
  cudaStream_t raw = nullptr;
  check(cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return Stream(raw);
}

Event make_event() {
  cudaEvent_t raw = nullptr;
  check(cudaEventCreateWithFlags(&raw, cudaEventDefault), "cudaEventCreateWithFlags");
  return Event(raw);
}

CublasHandle make_cublas_handle(cudaStream_t stream) {
  cublasHandle_t raw = nullptr;
  check(cublasCreate(&raw), "cublasCreate");
  CublasHandle handle(raw);
  check(cublasSetStream(raw, stream), "cublasSetStream");
  // fp32 products stay fp32, as in PyTorch (torch.backends.cuda.matmul.allow_tf32 is false).
  check(cublasSetMathMode(raw, CUBLAS_DEFAULT_MATH), "cublasSetMathMode");
  return handle;
}

CublasLtHandle make_cublaslt_handle() {
  cublasLtHandle_t raw = nullptr;
  check(cublasLtCreate(&raw), "cublasLtCreate");
  return CublasLtHandle(raw);
}

CudnnHandle make_cudnn_handle(cudaStream_t stream) {
  cudnnHandle_t raw = nullptr;
  cudnn::check(cudnnCreate(&raw), "cudnnCreate");
  CudnnHandle handle(raw);
  cudnn::check(cudnnSetStream(raw, stream), "cudnnSetStream");
  return handle;
}

}  // namespace memfathom::cuda
