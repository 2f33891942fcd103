// nvml_gpus: maps a CUDA device index to an NVML GPU.
#pragma once

#include "profiler/nvml_library.h"

namespace memfathom {

struct NvmlGpu {
  NvmlLibrary::Handle device = nullptr;  // a GPU or a MIG instance: its memory is what jobs get
  NvmlLibrary::Handle whole = nullptr;   // the GPU itself
};

// GPUs are numbered as CUDA does, by PCI bus and filtered by CUDA_VISIBLE_DEVICES; a GPU in MIG
// mode counts as its first instance. Inaccessible GPUs are not counted.
int count_nvml_gpus(const NvmlLibrary& library);
// Throws Error(kEnvironment) if there is no such GPU.
NvmlGpu find_nvml_gpu(const NvmlLibrary& library, int index);

bool is_mig_enabled(const NvmlLibrary& library, NvmlLibrary::Handle gpu);

}  // namespace memfathom
