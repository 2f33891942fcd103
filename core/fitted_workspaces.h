// FittedWorkspaces: the workspace models of a calibration, for use without the libraries.
#pragma once

#include <string>
#include <unordered_map>

#include "core/calibration.h"
#include "core/workspace.h"
#include "core/workspace_features.h"

namespace memfathom {

// Operations without a model use `fallback`; without a fallback they return 0 bytes with source
// kDefault.
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
