#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <system_error>

#include "kernels/workspaces/cudnn_planner.h"
#include "kernels/workspaces/workspace_store.h"

namespace memfathom {
namespace {

// The libcudnn.so.9 the loader would take for the planner: the same places in the same order.
std::filesystem::path find_cudnn(const CudnnPlannerOptions& options) {
  std::vector<std::filesystem::path> directories;
  if (!options.library_directory.empty()) directories.push_back(options.library_directory);
  if (const char* path = std::getenv("LD_LIBRARY_PATH"); path != nullptr) {
    for (std::string_view rest = path; !rest.empty();) {
      const std::size_t end = rest.find(':');
      if (end != 0) directories.emplace_back(rest.substr(0, end));
      rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    }
  }
  for (const char* usual : {MEMFATHOM_CUDNN_DIRECTORY, "/usr/local/cuda/lib64",
                            "/usr/lib/x86_64-linux-gnu", "/usr/lib64"}) {
    if (*usual != '\0') directories.emplace_back(usual);
  }
  std::error_code error;
  for (const std::filesystem::path& directory : directories) {
    const std::filesystem::path file = directory / "libcudnn.so.9";
    if (std::filesystem::exists(file, error)) return std::filesystem::canonical(file, error);
  }
  return {};
}

// Path, size and time of the library file: when one changes, its version is asked again.
std::string identity_of(const std::filesystem::path& library) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(library, error);
  if (error) return {};
  const auto time = std::filesystem::last_write_time(library, error).time_since_epoch();
  if (error) return {};
  return fmt::format("{} {} {}", library.string(), size,
                     std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

}  // namespace

std::string installed_cudnn_version(const CudnnPlannerOptions& options,
                                    const std::filesystem::path& cache_directory) {
  const std::string identity = identity_of(find_cudnn(options));
  // The store keeps numbers: 9.19.0 is 91900, as cudnnGetVersion() has it.
  WorkspaceStore versions(cache_directory.empty() || identity.empty()
                              ? std::filesystem::path{}
                              : cache_directory / "cudnn-versions");
  if (const std::optional<std::int64_t> known = versions.find(identity)) {
    return fmt::format("{}.{}.{}", *known / 10000, *known / 100 % 100, *known % 100);
  }
  // The greeting alone: milliseconds, because cuDNN's larger parts are loaded by the first plan.
  std::string version = PlannerProcess(planner_command(options)).cudnn_version();
  int major = 0, minor = 0, patch = 0;
  if (!identity.empty() && std::sscanf(version.c_str(), "%d.%d.%d", &major, &minor, &patch) == 3) {
    const CachedWorkspace answer{identity, major * 10000 + minor * 100 + patch};
    versions.append(std::span(&answer, 1));
  }
  return version;
}

}  // namespace memfathom
