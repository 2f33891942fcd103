// CudnnPlanner: asks the installed cuDNN, in child processes started at the first question.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/workspaces/convolution_planner.h"
#include "kernels/workspaces/planner_process.h"

namespace memfathom {

struct CudnnPlannerOptions {
  std::string gpu = "sm_80";                // as for describe_gpu()
  std::filesystem::path program;            // empty: find_planner_program()
  std::filesystem::path library_directory;  // of the libcudnn.so.9 to use; empty: the system's
  bool allow_tf32 = true;                   // torch.backends.cudnn.allow_tf32
  bool deterministic = false;               // torch.backends.cudnn.deterministic
  std::filesystem::path
      libcuda;        // opened in the child first: attention needs one, the toolkit's stub will do
  int processes = 1;  // large batches are dealt to this many
};

// $MEMFATHOM_CUDNN_PLANNER, else among the companion files, in libexec. Throws Error(kEnvironment)
// when in none.
std::filesystem::path find_planner_program();

// How the planner's process is started for these options.
PlannerCommand planner_command(const CudnnPlannerOptions& options);

class CudnnPlanner : public ConvolutionPlanner {
 public:
  // Throws Error(kInput) for an unknown GPU; starts nothing.
  explicit CudnnPlanner(CudnnPlannerOptions options);
  ~CudnnPlanner() override;

  std::vector<std::optional<Bytes>> ask(std::span<const ConvolutionQuery> queries) override;

  // The raw answers to lines of the planner's language (planner_main.cc): "BYTES" or "refused
  // SENTENCE".
  std::vector<std::string> query_lines(std::span<const std::string> lines);

  // "9.19.0"; starts a process if none is running.
  std::string cudnn_version();

 private:
  PlannerProcess& process(std::size_t index);

  CudnnPlannerOptions options_;
  std::string device_line_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<PlannerProcess>> processes_;
};

// The version of the cuDNN that would be asked, without starting it when `cache_directory`
// remembers the library file. Throws Error(kEnvironment) when there is none.
std::string installed_cudnn_version(const CudnnPlannerOptions& options,
                                    const std::filesystem::path& cache_directory);

}  // namespace memfathom
