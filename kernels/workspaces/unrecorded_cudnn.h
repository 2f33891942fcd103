// UnrecordedCudnnModel: the workspaces of a cuDNN of 2024 (9.0 to 9.7), which cannot be asked
// without a device, where its runs are seen to differ from what later versions choose.
#pragma once

#include <memory>

#include "core/workspace.h"

namespace memfathom {

// A forward convolution with few outputs for its inputs (1 to 8 and less) reads its maps as they
// lie: later versions copy them into another layout first. Found on half of the dense networks
// among the published runs of an A100; the other half agrees (docs/accuracy.md).
bool reads_maps_as_they_lie(const ConvolutionQuery& query);

class UnrecordedCudnnModel final : public WorkspaceModel {
 public:
  explicit UnrecordedCudnnModel(std::unique_ptr<WorkspaceModel> later);

  WorkspaceAnswer convolution(const ConvolutionQuery& query) const override;
  WorkspaceAnswer fft(const FftQuery& query) const override;

 private:
  std::unique_ptr<WorkspaceModel> later_;
};

}  // namespace memfathom
