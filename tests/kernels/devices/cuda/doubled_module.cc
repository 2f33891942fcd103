// The module as the program sees it, with the doubles inside.
#include "kernels/devices/cuda_module.h"

extern "C" const memfathom::CudaModule* memfathom_cuda_module();

// Keeps the entry point, which nothing else here refers to.
__attribute__((used)) static const memfathom::CudaModuleEntry kEntry = memfathom_cuda_module;
