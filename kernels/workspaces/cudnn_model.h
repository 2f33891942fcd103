// open_cudnn_model: the workspaces of an installed cuDNN. CMake chooses the source: with_cudnn.cc,
// or without_cudnn.cc where no process can be started.
#pragma once

#include <memory>

#include "kernels/workspaces/cached_workspace_model.h"

namespace memfathom {

// Without a cuDNN the model is null, `fallback` stays the caller's, and `note` says why.
OpenedWorkspaceModel open_cudnn_model(const WorkspaceModelOptions& options,
                                      std::unique_ptr<WorkspaceModel>& fallback);

}  // namespace memfathom
