// open_cpu_device: the cpu device, from the module libmemfathom_cpu.so, which is loaded on first use.
#pragma once

#include <memory>

#include "kernels/device.h"

namespace memfathom {

// Looks beside the program, in ../lib/memfathom, in MEMFATHOM_MODULES, then where the loader looks. The module stays
// loaded until the process ends. Throws Error(kEnvironment) when it cannot be opened.
std::unique_ptr<Device> open_cpu_device();

}  // namespace memfathom
