#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "kernels/workspaces/architectures.h"
#include "kernels/workspaces/cached_workspace_model.h"
#include "kernels/workspaces/cudnn_planner.h"
#include "kernels/workspaces/early_cudnn9.h"
#include "kernels/workspaces/fitted_workspace_model.h"
#include "kernels/workspaces/legacy_cudnn.h"

namespace memfathom {
namespace {

// One store per library version and GPU: cuDNN plans for the number of multiprocessors, not for the
// architecture alone.
std::filesystem::path store_stem(const WorkspaceModelOptions& options, const std::string& version) {
  if (options.cache_directory.empty()) return {};
  const GpuDescription& gpu = describe_gpu(options.gpu);
  return options.cache_directory /
         fmt::format("cudnn-{}-{}-{}", version, architecture_of(gpu), gpu.key);
}

OpenedWorkspaceModel open_current_model(const WorkspaceModelOptions& options) {
  OpenedWorkspaceModel opened;
  auto fitted = std::make_unique<FittedWorkspaceModel>(options.gpu, options.cudnn_table);
  if (options.query_cudnn) {
    try {
      CudnnPlannerOptions planner{.gpu = options.gpu,
                                  .program = {},
                                  .library_directory = options.library_directory,
                                  .processes = 2};
      opened.cudnn_version = installed_cudnn_version(planner, options.cache_directory);
      opened.model = std::make_unique<CachedWorkspaceModel>(
          std::make_unique<CudnnPlanner>(std::move(planner)),
          std::make_unique<WorkspaceStore>(store_stem(options, opened.cudnn_version)),
          std::move(fitted));
      return opened;
    } catch (const Error& error) {
      opened.note = fmt::format("cuDNN's workspaces come from the fitted model: {}", error.what());
    }
  }
  opened.model = fitted == nullptr
                     ? std::make_unique<FittedWorkspaceModel>(options.gpu, options.cudnn_table)
                     : std::move(fitted);
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
