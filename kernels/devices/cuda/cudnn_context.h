// CudnnContext: cuDNN's handle, created on first use.
#pragma once

#include "kernels/devices/cuda/cudnn/plan.h"
#include "kernels/devices/cuda/handles.h"

namespace memfathom::cuda {

// A failed creation throws Error(kEnvironment) and is tried again next time. Not thread-safe.
class CudnnContext {
 public:
  explicit CudnnContext(cudaStream_t stream) : stream_(stream) {}

  cudaStream_t stream() const { return stream_; }
  cudnnHandle_t handle() {
    if (!handle_) handle_ = make_cudnn_handle(stream_);
    return handle_.get();
  }
  // For plans; cuDNN must be usable before it is asked for one.
  const cudnn::DeviceProperties& properties() {
    handle();
    return properties_;
  }

 private:
  cudaStream_t stream_;
  CudnnHandle handle_;
  cudnn::DeviceProperties properties_ = cudnn::DeviceProperties::current();
};

}  // namespace memfathom::cuda
