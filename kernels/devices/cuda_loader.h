// cuda_loader: opens the CUDA module on demand, so that the program starts without NVIDIA's
// libraries.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "kernels/devices/cuda_module.h"

namespace memfathom {

// The candidate paths of libmemfathom_cuda.so, in order: only $MEMFATHOM_CUDA_MODULE if it is set,
// else among the companion files (core/companion_files.h), in lib, in the Python package of the
// wheel that brings it, and the dynamic linker's paths.
std::vector<std::filesystem::path> cuda_module_search_paths();

// Opens the first existing module; it stays loaded. Throws Error(kEnvironment) if there is none, if
// a library it needs is missing, or if it belongs to another build.
const CudaModule& load_cuda_module(
    const std::vector<std::filesystem::path>& places = cuda_module_search_paths());

// Opens device "cuda:N", numbered by PCI bus. Throws Error(kEnvironment) without a module, a
// driver, or such a GPU.
std::unique_ptr<Device> open_cuda_device(int index);

}  // namespace memfathom
