// Current stack: the constants of a GPU that has no calibration of its own. They come from the
// published figures outside the allocator (core/outside_allocator.h), so every GPU is answered for
// the same PyTorch unless a job names another one.
#pragma once

#include <string>

#include "core/calibration.h"
#include "core/live_gpu.h"
#include "estimator/job/job.h"

namespace memfathom {

// `published` is the calibration kCurrentStackName; `live` names a GPU that the job does not, or is
// null. The result has the library constants of the job's GPU and stack, and the residuals of such
// figures as the ratios of the group kOutsideGroup.
Calibration current_stack_calibration(const Calibration& published, const Job& job,
                                      const LiveGpu* live);

// NCCL's buffers and kernels on GPUs without NVLink, in bytes; 0 where NVLink is likely or the GPU
// is unknown.
inline constexpr const char* kNcclWithoutNvlink = "nccl.without_nvlink";

}  // namespace memfathom
