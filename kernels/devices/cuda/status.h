// status: converts every CUDA library's status to Error, with the failed call and its arguments.
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

// Whether a library rejected a call before a launch: the device is unchanged.
bool is_recoverable(cudaError_t status);
bool is_recoverable(cublasStatus_t status);
bool is_recoverable(cufftResult status);

// Unless `status` is success, throws Error(kEnvironment), or Error(kOutOfMemory) if the device has
// no memory for what the call loads or allocates. Clears the CUDA runtime's last error so that it
// is not attributed to a later call.
void check(cudaError_t status, std::string_view call);
void check(cublasStatus_t status, std::string_view call);
void check(cufftResult status, std::string_view call);

}  // namespace memfathom::cuda
