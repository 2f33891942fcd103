#include "cli/calibrate/estimator_runner.h"

#include "core/architecture.h"
#include "core/document.h"
#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"

namespace memfathom {
Job job_of(const std::string& text) { return read_job(parse_json(text, "job")); }

FrameworkPolicy policy_of(const Environment& environment) {
  const bool is_torch = environment.framework == "pytorch";
  if (const int capability = compute_capability(environment.architecture))
    return FrameworkPolicy::for_stack(is_torch ? environment.framework_version : "", capability);
  FrameworkPolicy policy;
  if (!environment.is_virtual()) policy.cublas_workspace = Bytes{};  // the cpu has no cuBLAS
  return policy;
}

Forecast EstimatorRunner::forecast(const std::string& job) const {
  const DryRun run = run_dry(job_of(job), {});
  return {run.reserved_peak, {run.uses_cublas, run.uses_cudnn, run.uses_cufft}};
}

void EstimatorRunner::run(Session& session, const std::string& job,
                          const StageCallback& reached) const {
  run_in(session, job_of(job), reached);
}

FrameworkPolicy EstimatorRunner::policy(const Environment& environment) const {
  return policy_of(environment);
}

}  // namespace memfathom
