#include "cli/calibrate/recorded_history.h"

#include <memory>
#include <sstream>

#include "cli/calibrate/estimator_runner.h"
#include "cli/calibrate/fit_rows.h"
#include "estimator/run/dry_run.h"

namespace memfathom {

HistoryComparison compare_with_replay(const std::string& file, const std::string& job,
                                      const Environment& environment,
                                      const std::string& cudnn_directory,
                                      std::vector<std::string>& notes) {
  const Trace recorded = load_trace(file);
  std::stringstream lines;
  TraceWriter writer(lines, false, R"({"from":"replay"})");
  DryRunOptions options;
  options.policy = policy_of(environment);
  options.history = &writer;
  std::unique_ptr<WorkspaceModel> workspaces;
  if (environment.kind() == DeviceKind::kCuda) {
    workspaces = pytorch_workspaces(environment, cudnn_directory, notes);
    options.workspaces = workspaces.get();
  } else {
    // Results of operations are recorded there, and nothing that kernels allocate inside.
    options.policy.count_workspaces = false;
    notes.emplace_back(
        "recorded on the cpu: the tensors of operations, without the temporaries and workspaces of "
        "a GPU's kernels");
  }
  run_dry(job_of(job), options);
  writer.finish();
  return compare_histories(recorded, read_trace(lines, "the job's replay"));
}

}  // namespace memfathom
