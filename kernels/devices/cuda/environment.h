// The environment of a CUDA device, as far as the CUDA libraries know it.
#pragma once

#include <string>

#include "core/environment.h"

namespace memfathom::cuda {

// "13.0" of the number that the runtime gives.
std::string cuda_version(int number);

// What NVML alone knows (the driver's release, MIG) is left to the profiler: `driver` is the newest
// CUDA the driver runs.
Environment read_environment(int device);

}  // namespace memfathom::cuda
