// The host side of the CUDA module: found and opened when a GPU is wanted, so that the program
// starts without NVIDIA's libraries.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "kernels/devices/cuda_module.h"

namespace memfathom {

// Where libmemfathom_cuda.so is looked for, in order: $MEMFATHOM_CUDA_MODULE alone if it is set,
// else beside the program, in lib/memfathom beside its folder, and wherever the dynamic linker
// looks.
std::vector<std::filesystem::path> cuda_module_search_paths();

// Opens the first module that is there; it stays loaded. Throws Error(kEnvironment) with one
// sentence when there is none, when a library it needs is missing, or when it belongs to another
// build.
const CudaModule& load_cuda_module(
    const std::vector<std::filesystem::path>& places = cuda_module_search_paths());

// "cuda:N" as a device, GPUs being counted by their PCI bus. Throws Error(kEnvironment): no
// module, no driver, no GPU, no such GPU.
std::unique_ptr<Device> open_cuda_device(int index);

}  // namespace memfathom
