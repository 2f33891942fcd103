// A module of another build: only its interface number is different.
#include "kernels/devices/cuda_module.h"
#include "kernels/devices/module_interface.h"

extern "C" const memfathom::CudaModule* memfathom_cuda_module() {
  static const memfathom::CudaModule module{memfathom::module_interface() + 1, nullptr, nullptr,
                                            nullptr};
  return &module;
}
