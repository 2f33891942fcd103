// Explanations: the arithmetic behind each line of an estimate, with the job's own numbers.
#pragma once

#include <string>
#include <vector>

#include "core/calibration.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/job.h"
#include "estimator/run/dry_run.h"

namespace memfathom {

// One per component of the estimate, in its order; then why reserved and device memory need not
// grow evenly with the job, where that applies. `calibration` may be null.
std::vector<Explanation> explain(const Job& job, const DryRun& run, const Estimate& estimate,
                                 const Calibration* calibration);

}  // namespace memfathom
