// Status: every CUDA library's status turned into Error, with the call that failed and what was
// asked of it.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cufft.h>

#include <string>
#include <string_view>

namespace memfathom::cuda {

// "cudaMalloc of 2.00 MiB: cudaErrorMemoryAllocation (out of memory)".
std::string sentence(std::string_view call, cudaError_t status);
std::string sentence(std::string_view call, cublasStatus_t status);
std::string sentence(std::string_view call, cufftResult status);

// Whether a library said no before anything was launched: the device is as it was.
bool is_recoverable(cudaError_t status);
bool is_recoverable(cublasStatus_t status);
bool is_recoverable(cufftResult status);

// Throws Error(kEnvironment), or Error(kOutOfMemory) where the device has no room for what the call
// loads or allocates by itself, unless `status` is success, and takes the error off cudart's own
// record so that it is not mistaken for a later call's.
void check(cudaError_t status, std::string_view call);
void check(cublasStatus_t status, std::string_view call);
void check(cufftResult status, std::string_view call);

}  // namespace memfathom::cuda
