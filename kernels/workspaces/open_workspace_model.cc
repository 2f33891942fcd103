#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "kernels/workspaces/architectures.h"
#include "kernels/workspaces/cached_workspace_model.h"
#include "kernels/workspaces/cudnn_planner.h"
#include "kernels/workspaces/fitted_workspace_model.h"
#include "kernels/workspaces/older_cudnn.h"
#include "kernels/workspaces/unrecorded_cudnn.h"

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

OpenedWorkspaceModel open_todays_model(const WorkspaceModelOptions& options) {
  OpenedWorkspaceModel opened;
  auto fitted = std::make_unique<FittedWorkspaceModel>(options.gpu, *options.table);
  if (options.ask_cudnn) {
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
                     ? std::make_unique<FittedWorkspaceModel>(options.gpu, *options.table)
                     : std::move(fitted);
  return opened;
}

}  // namespace

OpenedWorkspaceModel open_workspace_model(const WorkspaceModelOptions& options) {
  if (!options.older) {
    OpenedWorkspaceModel opened = open_todays_model(options);
    if (options.unrecorded)
      opened.model = std::make_unique<UnrecordedCudnnModel>(std::move(opened.model));
    return opened;
  }
  WorkspaceModelOptions without_tf32 = options;
  without_tf32.gpu = "sm_75";
  OpenedWorkspaceModel opened = open_todays_model(without_tf32);
  opened.model = std::make_unique<OlderCudnnModel>(std::move(opened.model));
  return opened;
}

}  // namespace memfathom
