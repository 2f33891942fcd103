// Which GPU of the driver a number of the CUDA runtime means.
#pragma once

#include "profiler/nvml_library.h"

namespace memfathom {

struct NvmlGpu {
  NvmlLibrary::Handle device = nullptr;  // a GPU, or one instance of it: whose memory jobs get
  NvmlLibrary::Handle whole = nullptr;   // the GPU itself
};

// GPUs are counted as the CUDA runtime counts them by PCI bus: through CUDA_VISIBLE_DEVICES, and
// of a GPU that is divided (MIG) its first instance. GPUs that are kept from this user do not
// count.
int count_nvml_gpus(const NvmlLibrary& library);
// Throws Error(kEnvironment) where there is no such GPU.
NvmlGpu find_nvml_gpu(const NvmlLibrary& library, int index);

bool is_mig_enabled(const NvmlLibrary& library, NvmlLibrary::Handle gpu);

}  // namespace memfathom
