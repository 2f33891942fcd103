// EarlyCudnn9Model: the workspaces of a cuDNN of 2024 (9.0 to 9.7), which cannot be asked
// without a device, where its runs are seen to differ from what later versions choose.
#pragma once

#include <memory>

#include "core/workspace.h"

namespace memfathom {

// A forward convolution with few outputs for its inputs (1 to 8 and less) reads its maps as they
// lie: later versions copy them into another layout first. Found on half of the dense networks
// among the published runs of an A100; the other half agrees (docs/accuracy.md).
bool skips_layout_conversion(const ConvolutionQuery& query);

class EarlyCudnn9Model final : public WorkspaceModel {
 public:
  explicit EarlyCudnn9Model(std::unique_ptr<WorkspaceModel> later);

  WorkspaceSize convolution(const ConvolutionQuery& query) const override;
  WorkspaceSize fft(const FftQuery& query) const override;
  WorkspaceSize attention(const AttentionQuery& query) const override;

 private:
  std::unique_ptr<WorkspaceModel> later_;
};

}  // namespace memfathom
