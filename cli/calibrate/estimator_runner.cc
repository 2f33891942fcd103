#include "cli/calibrate/estimator_runner.h"

#include "core/architecture.h"
#include "core/document.h"
#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"
#include "estimator/run/replayed_job.h"

namespace memfathom {
Job job_of(const std::string& text) { return read_job(parse_json(text, "job")); }

FrameworkPolicy policy_of(const Environment& environment) {
  const bool is_torch = environment.framework == "pytorch";
  FrameworkPolicy policy;
  switch (environment.kind()) {
    case DeviceKind::kCuda:
      policy = FrameworkPolicy::for_stack(is_torch ? environment.framework_version : "",
                                          compute_capability(environment.architecture));
      // Our own layers take cuDNN's fused attention wherever it has one (docs/cuda.md).
      if (!is_torch) policy.prefers_cudnn_attention = policy.compute_capability >= 80;
      break;
    case DeviceKind::kCpu:  // it has no cuBLAS
      policy.cublas_workspace = Bytes{};
      policy.cublaslt_workspace = Bytes{};
      break;
    case DeviceKind::kVirtual:
    case DeviceKind::kDry: break;
  }
  return policy;
}

Forecast EstimatorRunner::forecast(const std::string& job) const {
  const DryRun run = run_dry(job_of(job), {});
  Forecast forecast{run.reserved_peak, {}};
  for (const MeasuredLibrary& library : kMeasuredLibraries) {
    const std::size_t row = constant_index(std::string("module.") + library.name);
    forecast.uses.*library.used = applies_to(kLibraryConstants[row].condition, replayed(run));
  }
  return forecast;
}

void EstimatorRunner::run(Session& session, const std::string& job,
                          const StageCallback& reached) const {
  run_in(session, job_of(job), reached);
}

FrameworkPolicy EstimatorRunner::policy(const Environment& environment) const {
  return policy_of(environment);
}

}  // namespace memfathom
