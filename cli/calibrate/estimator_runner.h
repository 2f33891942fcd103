// EstimatorRunner: builds and runs the profiler's jobs with the estimator's models.
#pragma once

#include "estimator/job/job.h"
#include "profiler/job_runner.h"

namespace memfathom {

class EstimatorRunner final : public JobRunner {
 public:
  Forecast forecast(const std::string& job) const override;
  void run(Session& session, const std::string& job, const StageCallback& reached) const override;
  FrameworkPolicy policy(const Environment& environment) const override;
};

// The behaviour of an environment: PyTorch itself or memfathom's layers. A replay of its samples
// must use the same policy.
FrameworkPolicy policy_of(const Environment& environment);

// The job of a sample: JSON text. Throws Error(kInput).
Job job_of(const std::string& text);

}  // namespace memfathom
