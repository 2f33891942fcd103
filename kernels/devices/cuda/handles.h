// Handles: owners of streams, events and library handles.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn_graph.h>

#include <memory>
#include <type_traits>

namespace memfathom::cuda {

// Destructors ignore errors; the next checked call reports them.
struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
struct DestroyCublas {
  void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
};
struct DestroyCublasLt {
  void operator()(cublasLtHandle_t handle) const { cublasLtDestroy(handle); }
};
struct DestroyCudnn {
  void operator()(cudnnHandle_t handle) const { cudnnDestroy(handle); }
};

using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;
using CublasHandle = std::unique_ptr<std::remove_pointer_t<cublasHandle_t>, DestroyCublas>;
using CublasLtHandle = std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, DestroyCublasLt>;
using CudnnHandle = std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, DestroyCudnn>;

// Each throws Error(kEnvironment) on failure, without leaks.
Stream make_stream();
Event make_event();
CublasHandle make_cublas_handle(cudaStream_t stream);
CublasLtHandle make_cublaslt_handle();
CudnnHandle make_cudnn_handle(cudaStream_t stream);

}  // namespace memfathom::cuda
