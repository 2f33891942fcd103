// Answering: estimates without any calibration, as the tests of advise/ need them.
#pragma once

#include "core/gpus.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/job.h"
#include "estimator/run/dry_run.h"

namespace memfathom {

inline Estimate estimate_dry(const Job& job, std::optional<Bytes> ceiling = {}) {
  EstimateContext context;
  if (job.target.memory) context.capacity = job.target.memory;
  if (!job.target.gpu.empty()) context.capacity = gpu_named(job.target.gpu, "").memory();
  DryRunOptions options;
  options.ceiling = ceiling;
  return make_estimate(job, run_dry(job, options), context);
}

}  // namespace memfathom
