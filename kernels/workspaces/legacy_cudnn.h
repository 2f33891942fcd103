// LegacyCudnnModel: the workspaces of cuDNN 7 and 8 as PyTorch before 2.0 asked for them.
#pragma once

#include <memory>
#include <optional>

#include "core/workspace.h"

namespace memfathom {

// The weight gradient of a 3x3 convolution by Winograd's algorithm in separate kernels: both maps
// and the weight as 6x6 tiles for every 4x4 positions, in fp32. Nothing where those libraries took
// another algorithm: other kernels, strides and types, and above 512 MiB, which no run that was
// looked at had (V100 and RTX 3070, 2021 and 2022).
std::optional<Bytes> winograd_weight_gradient(const ConvolutionQuery& query);

// Everything else ran as it does today on a GPU without TF32: fused kernels that want next to
// nothing, whatever the GPU.
class LegacyCudnnModel final : public WorkspaceModel {
 public:
  explicit LegacyCudnnModel(std::unique_ptr<WorkspaceModel> without_tf32);

  WorkspaceSize convolution(const ConvolutionQuery& query) const override;
  WorkspaceSize fft(const FftQuery& query) const override;
  WorkspaceSize attention(const AttentionQuery& query) const override;

 private:
  std::unique_ptr<WorkspaceModel> without_tf32_;
};

}  // namespace memfathom
