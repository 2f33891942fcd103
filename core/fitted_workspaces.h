// FittedWorkspaces: the workspace models of a calibration, answering where no library can be asked.
#pragma once

#include <string>
#include <unordered_map>

#include "core/calibration.h"
#include "core/workspace.h"
#include "core/workspace_features.h"

namespace memfathom {

// Operations that the calibration has no model of go to `fallback`; without one they answer 0
// bytes, source default.
class FittedWorkspaces final : public WorkspaceModel {
 public:
  explicit FittedWorkspaces(const Calibration& calibration, Library convolutions = Library::kCudnn,
                            Library transforms = Library::kCufft,
                            const WorkspaceModel* fallback = nullptr);

  WorkspaceSize convolution(const ConvolutionQuery& query) const override;
  WorkspaceSize fft(const FftQuery& query) const override;
  WorkspaceSize attention(const AttentionQuery& query) const override;

 private:
  const WorkspaceFeatures* model_of(Library library, const std::string& operation) const;

  std::unordered_map<std::string, WorkspaceFeatures> models_;  // by "library.operation"
  Library convolutions_;
  Library transforms_;
  const WorkspaceModel* fallback_;
};

}  // namespace memfathom
