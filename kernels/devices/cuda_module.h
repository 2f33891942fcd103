// CudaModule: the interface of libmemfathom_cuda.so, which the program opens with dlopen
// (kernels/devices/cuda_loader.h).
//
// C++ types cross this boundary: module and program are built together, and a module of another
// build is rejected (kernels/devices/module_interface.h).
#pragma once

#include <cstdint>
#include <memory>

#include "core/bytes.h"
#include "kernels/framework/device/device.h"

namespace memfathom {

constexpr const char* kCudaModuleSymbol = "memfathom_cuda_module";

struct CudaMemory {
  Bytes free, total;
};

// Every function throws Error(kEnvironment) without a driver or such a device.
struct CudaModule {
  std::uint64_t interface = 0;  // module_interface() of its build
  int (*device_count)() = nullptr;
  std::unique_ptr<Device> (*open)(int index) = nullptr;
  // Of the whole device, from cudaMemGetInfo: creates a context if there is none.
  CudaMemory (*memory)(int index) = nullptr;
  // Threads that the device can hold at once: the driver keeps memory for each.
  std::int64_t (*resident_threads)(int index) = nullptr;
};

using CudaModuleEntry = const CudaModule* (*)();

}  // namespace memfathom
