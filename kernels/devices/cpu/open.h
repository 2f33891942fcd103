// open_cpu_device: the cpu device, from the module libmemfathom_cpu.so, which is loaded on first
// use.
#pragma once

#include <memory>

#include "kernels/framework/device/device.h"

namespace memfathom {

// Looks for the module at $MEMFATHOM_CPU_MODULE alone if that is set, else beside the program, in
// lib/memfathom beside its folder, and wherever the dynamic linker looks. It stays loaded until the
// process ends. Throws Error(kEnvironment) when there is none, when a library it needs is missing,
// or when it is of another version.
std::unique_ptr<Device> open_cpu_device();

}  // namespace memfathom
