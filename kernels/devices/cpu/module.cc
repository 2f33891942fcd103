// The entry point of libmemfathom_cpu.so, a separate module because loading oneDNN takes longer
// than starting the whole program.
#include "kernels/devices/cpu/cpu_device.h"
#include "kernels/devices/module_interface.h"

// A module from another build may have incompatible classes: the loader compares this first.
extern "C" __attribute__((visibility("default"))) std::uint64_t memfathom_cpu_interface() {
  return memfathom::module_interface();
}

// The caller owns the device. Errors are thrown as memfathom::Error.
extern "C" __attribute__((visibility("default"))) memfathom::Device* memfathom_open_cpu() {
  return new memfathom::CpuDevice();
}
