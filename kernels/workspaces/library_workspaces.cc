#include "kernels/workspaces/library_workspaces.h"

#include <fmt/format.h>

#include "core/architecture.h"
#include "kernels/workspaces/architectures.h"
#include "kernels/workspaces/cached_workspace_model.h"
#include "kernels/workspaces/workspace_store.h"

namespace memfathom {

OpenedWorkspaces LibraryWorkspaces::open(const WorkspaceRequirement& requirement) const {
  WorkspaceModelOptions options;
  options.cache_directory = default_cache_directory();
  options.legacy_cudnn = requirement.legacy_cudnn;
  if (!requirement.cudnn_table.empty()) {
    options.query_cudnn = false;
    options.early_cudnn9 = true;
    options.cudnn_table = requirement.cudnn_table;
  }
  const std::lock_guard lock(mutex_);
  Entry& entry = models_[fmt::format("{} {} {}", requirement.compute_capability,
                                     requirement.legacy_cudnn, requirement.cudnn_table)];
  if (!entry.model) {
    options.gpu = nearest_known_architecture(requirement.compute_capability).architecture;
    entry.compute_capability = compute_capability(options.gpu);
    entry.model = open_workspace_model(options).model;
  }
  return {entry.model.get(), entry.compute_capability};
}

}  // namespace memfathom
