// CudnnContext: cuDNN's handle and its description of the device, each created on first use.
#pragma once

#include <optional>

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
  const cudnn::DeviceProperties& properties() {
    if (!properties_) properties_ = cudnn::DeviceProperties::from_handle(handle());
    return *properties_;
  }

 private:
  cudaStream_t stream_;
  CudnnHandle handle_;
  std::optional<cudnn::DeviceProperties> properties_;
};

}  // namespace memfathom::cuda
