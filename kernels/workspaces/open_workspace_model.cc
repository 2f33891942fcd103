#include <utility>

#include "kernels/workspaces/cached_workspace_model.h"
#include "kernels/workspaces/cudnn_model.h"
#include "kernels/workspaces/early_cudnn9.h"
#include "kernels/workspaces/fitted_workspace_model.h"
#include "kernels/workspaces/legacy_cudnn.h"

namespace memfathom {
namespace {

OpenedWorkspaceModel open_current_model(const WorkspaceModelOptions& options) {
  std::unique_ptr<WorkspaceModel> fitted =
      std::make_unique<FittedWorkspaceModel>(options.gpu, options.cudnn_table);
  OpenedWorkspaceModel opened;
  if (options.query_cudnn) opened = open_cudnn_model(options, fitted);
  if (opened.model == nullptr) opened.model = std::move(fitted);
  return opened;
}

}  // namespace

OpenedWorkspaceModel open_workspace_model(const WorkspaceModelOptions& options) {
  if (!options.legacy_cudnn) {
    OpenedWorkspaceModel opened = open_current_model(options);
    if (options.early_cudnn9)
      opened.model = std::make_unique<EarlyCudnn9Model>(std::move(opened.model));
    return opened;
  }
  WorkspaceModelOptions without_tf32 = options;
  without_tf32.gpu = "sm_75";
  OpenedWorkspaceModel opened = open_current_model(without_tf32);
  opened.model = std::make_unique<LegacyCudnnModel>(std::move(opened.model));
  return opened;
}

}  // namespace memfathom
