// WorkspaceSource: opens the workspace model of a GPU architecture and a library version.
// kernels/workspaces/library_workspaces.h implements it with cuDNN, its cache and the fitted
// tables.
#pragma once

#include <string>

#include "core/workspace.h"

namespace memfathom {

struct WorkspaceRequirement {
  int compute_capability = 80;
  bool legacy_cudnn = false;  // the API that PyTorch used before 2.0
  // "9.19": the fitted table of that cuDNN; empty: the installed library, else the newest table.
  std::string cudnn_table;
};

struct OpenedWorkspaces {
  const WorkspaceModel* model = nullptr;  // owned by the source
  // The compute capability that the model plans for: the nearest known one where the required one
  // is not described.
  int compute_capability = 0;
};

class WorkspaceSource {
 public:
  virtual ~WorkspaceSource() = default;
  // May be called from several threads; a model is opened once and kept.
  virtual OpenedWorkspaces open(const WorkspaceRequirement& requirement) const = 0;
};

}  // namespace memfathom
