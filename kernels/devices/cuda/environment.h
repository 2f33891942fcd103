// environment: a CUDA device's Environment, as far as the CUDA libraries report it.
#pragma once

#include <string>

#include "core/environment.h"

namespace memfathom::cuda {

// "13.0" from the runtime's version number.
std::string cuda_version(int number);

// 90 is 9.0.
int compute_capability(int device);

// The profiler adds what only NVML reports (the driver's release, MIG): here `driver` is the newest
// CUDA version that the driver supports.
Environment read_environment(int device);

}  // namespace memfathom::cuda
