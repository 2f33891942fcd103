// The GPUs that a job fits on.
#pragma once

#include <optional>
#include <vector>

#include "core/gpus.h"
#include "estimator/answer/estimate.h"
#include "estimator/session/estimator.h"
#include "estimator/session/job_input.h"

namespace memfathom {

struct GpuFit {
  Gpu gpu;
  std::optional<Estimate> estimate;  // of the job on this GPU; absent in a plain list
};

// All known GPUs, smallest memory first, without estimates.
std::vector<GpuFit> list_gpus();

// The GPUs that the job fits on, tightly or not, smallest memory first. Whatever the document says
// of another target's memory is ignored.
std::vector<GpuFit> gpus_for_job(const JobInput& input, const Estimator& estimator);

}  // namespace memfathom
