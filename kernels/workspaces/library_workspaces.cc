#include "kernels/workspaces/library_workspaces.h"

#include <fmt/format.h>

#include "core/architecture.h"
#include "core/error.h"
#include "kernels/workspaces/architectures.h"
#include "kernels/workspaces/cached_workspace_model.h"
#include "kernels/workspaces/fitted_table.h"
#include "kernels/workspaces/workspace_store.h"

namespace memfathom {
namespace {

const FittedTable& table_named(const std::string& version) {
  if (version == "9.8") return fitted_table_cudnn_9_8();
  if (version == "9.19") return fitted_table_cudnn_9_19();
  throw Error(ErrorKind::kInternal, fmt::format("there is no fitted table of cuDNN {}", version));
}

}  // namespace

OpenedWorkspaces LibraryWorkspaces::open(const WorkspaceRequirement& requirement) const {
  WorkspaceModelOptions options;
  options.cache_directory = default_cache_directory();
  options.legacy_cudnn = requirement.legacy_cudnn;
  if (!requirement.cudnn_table.empty()) {
    options.query_cudnn = false;
    options.early_cudnn9 = true;
    options.table = &table_named(requirement.cudnn_table);
  }
  const std::lock_guard lock(mutex_);
  Entry& entry = models_[fmt::format("{} {} {}", requirement.compute_capability,
                                     requirement.legacy_cudnn, requirement.cudnn_table)];
  if (!entry.model) {
    const NearestArchitecture nearest = nearest_known_architecture(requirement.compute_capability);
    options.gpu = nearest.architecture;
    entry.compute_capability = compute_capability(nearest.architecture);
    entry.model = open_workspace_model(options).model;
  }
  return {entry.model.get(), entry.compute_capability};
}

}  // namespace memfathom
