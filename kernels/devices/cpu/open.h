// open_cpu_device: the cpu device from the module libmemfathom_cpu.so, which is loaded on first
// use.
#pragma once

#include <memory>

#include "kernels/framework/device/device.h"

namespace memfathom {

// Searches for the module only at $MEMFATHOM_CPU_MODULE if that is set, else next to the program,
// in lib/memfathom next to its folder, and in the dynamic linker's paths. It stays loaded until the
// process ends. Throws Error(kEnvironment) if it is missing, lacks a library, or has another
// version.
std::unique_ptr<Device> open_cpu_device();

}  // namespace memfathom
