// A module of another build: only its interface number is different.
#include "kernels/cuda/module.h"

extern "C" const memfathom::CudaModule* memfathom_cuda_module() {
  static const memfathom::CudaModule module{memfathom::kCudaModuleAbi + 1, nullptr, nullptr,
                                            nullptr};
  return &module;
}
