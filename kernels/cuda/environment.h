// The environment of a CUDA device, as far as the CUDA libraries know it.
#pragma once

#include "core/environment.h"

namespace memfathom::cuda {

// What NVML alone knows (the driver's release, MIG) is left to the profiler: `driver` is the newest
// CUDA the driver runs.
Environment read_environment(int device);

}  // namespace memfathom::cuda
