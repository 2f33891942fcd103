// Target capability: the compute capability of the GPU that a job names, by its name or by itself.
#pragma once

#include "core/gpus.h"
#include "estimator/job/job.h"

namespace memfathom {

// 0: the job names no GPU that is known, and no architecture.
inline int named_capability(const TargetSpec& target) {
  const Gpu* gpu = target.gpu.empty() ? nullptr : find_gpu(target.gpu);
  return gpu != nullptr ? gpu->compute_capability() : target.compute_capability;
}

}  // namespace memfathom
