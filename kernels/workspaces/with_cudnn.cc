#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "kernels/workspaces/architectures.h"
#include "kernels/workspaces/cudnn_model.h"
#include "kernels/workspaces/cudnn_planner.h"

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

}  // namespace

OpenedWorkspaceModel open_cudnn_model(const WorkspaceModelOptions& options,
                                      std::unique_ptr<WorkspaceModel>& fallback) {
  OpenedWorkspaceModel opened;
  try {
    CudnnPlannerOptions planner{.gpu = options.gpu,
                                .program = {},
                                .library_directory = options.library_directory,
                                .processes = 2};
    opened.cudnn_version = installed_cudnn_version(planner, options.cache_directory);
    auto asked = std::make_unique<CudnnPlanner>(std::move(planner));
    auto store = std::make_unique<WorkspaceStore>(store_stem(options, opened.cudnn_version));
    opened.model = std::make_unique<CachedWorkspaceModel>(std::move(asked), std::move(store),
                                                          std::move(fallback));
  } catch (const Error& error) {
    opened.note = fmt::format("cuDNN's workspaces come from the fitted model: {}", error.what());
  }
  return opened;
}

}  // namespace memfathom
