// The entry point of libmemfathom_cpu.so: oneDNN takes longer to load than the whole program
// otherwise takes to start.
#include "kernels/devices/cpu/cpu_device.h"
#include "kernels/devices/module_interface.h"

// A module of another build has other classes under the same names: the loader compares before it
// calls.
extern "C" __attribute__((visibility("default"))) std::uint64_t memfathom_cpu_interface() {
  return memfathom::module_interface();
}

// The caller owns the device. Errors are thrown as memfathom::Error.
extern "C" __attribute__((visibility("default"))) memfathom::Device* memfathom_open_cpu() {
  return new memfathom::CpuDevice();
}
