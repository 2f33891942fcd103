// Which implementation PyTorch gives a convolution to on a CUDA device: cuDNN, or a kernel of its
// own without cuDNN's workspace.
#pragma once

#include <cstdint>
#include <optional>

#include "core/workspace.h"

namespace memfathom {

enum class ConvolutionBackend : std::uint8_t {
  kCudnn,
  kDepthwise,  // native kernels; no scratch memory at all
  kSlow,       // im2col and matrix products; holds a columns buffer (slow_columns)
};

// The choice of aten/src/ATen/native/Convolution.cpp (_select_conv_backend and
// ConvParams::use_cudnn, use_cudnn_depthwise, is_depthwise) of PyTorch 2.x on CUDA with
// cudnn.enabled and cudnn.depthwise_kernel "auto" (pytorch#176500). `cudnn_version` is
// cudnnGetVersion()'s number: 90800 to 91499 had faults that PyTorch steps around. Versions before
// 9.3 refuse tensors that need 64-bit indices; that is not modelled. 2.15 does not have the
// heuristic per GPU for depthwise convolutions that was proposed later (pytorch#170609).
ConvolutionBackend pytorch_convolution_backend(const ConvolutionQuery& query,
                                               std::int64_t cudnn_version = 91900);

inline bool pytorch_uses_cudnn(const ConvolutionQuery& query, std::int64_t cudnn_version = 91900) {
  return pytorch_convolution_backend(query, cudnn_version) == ConvolutionBackend::kCudnn;
}

// The columns buffer of the slow implementations: one sample's unfolded input, channels x kernel
// elements x positions of the smaller map. Groups are run one after the other.
Bytes slow_columns(const ConvolutionQuery& query);

// What a convolution wants where cuDNN is not used: nothing, or the columns. Nothing is returned
// where cuDNN is.
std::optional<Bytes> pytorch_workspace_without_cudnn(const ConvolutionQuery& query,
                                                     std::int64_t cudnn_version = 91900);

}  // namespace memfathom
