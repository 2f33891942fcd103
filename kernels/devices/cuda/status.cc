#include "kernels/devices/cuda/status.h"

#include <fmt/format.h>

#include "core/error.h"

namespace memfathom::cuda {
namespace {

const char* name_of(cufftResult status) {
  switch (status) {
    case CUFFT_INVALID_PLAN: return "CUFFT_INVALID_PLAN";
    case CUFFT_ALLOC_FAILED: return "CUFFT_ALLOC_FAILED";
    case CUFFT_INVALID_VALUE: return "CUFFT_INVALID_VALUE";
    case CUFFT_INTERNAL_ERROR: return "CUFFT_INTERNAL_ERROR";
    case CUFFT_EXEC_FAILED: return "CUFFT_EXEC_FAILED";
    case CUFFT_SETUP_FAILED: return "CUFFT_SETUP_FAILED";
    case CUFFT_INVALID_SIZE: return "CUFFT_INVALID_SIZE";
    case CUFFT_NO_WORKSPACE: return "CUFFT_NO_WORKSPACE";
    default: return "cuFFT status";
  }
}

// Advice for errors with a known remedy.
const char* advice_for(cudaError_t status) {
  switch (status) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return "; the CUDA module has no kernels for this GPU: build memfathom on this machine, or "
             "with -DMEMFATHOM_RELEASE_ARCHITECTURES=ON";
    case cudaErrorDevicesUnavailable:
      return "; another process holds the GPU in exclusive mode (see nvidia-smi -q -d COMPUTE)";
    default: return "";
  }
}

// With lazy loading a kernel's code and a library's tables are allocated on first use, so any call
// may run out of memory. Nothing was executed then.
bool is_out_of_memory(cudaError_t status) { return status == cudaErrorMemoryAllocation; }
bool is_out_of_memory(cublasStatus_t status) { return status == CUBLAS_STATUS_ALLOC_FAILED; }
bool is_out_of_memory(cufftResult status) { return status == CUFFT_ALLOC_FAILED; }

template <typename Status>
[[noreturn]] void fail(std::string_view call, Status status) {
  throw Error(is_out_of_memory(status) ? ErrorKind::kOutOfMemory : ErrorKind::kEnvironment,
              sentence(call, status));
}

}  // namespace

std::string sentence(std::string_view call, cudaError_t status) {
  return fmt::format("{}: {} ({}){}", call, cudaGetErrorName(status), cudaGetErrorString(status),
                     advice_for(status));
}

std::string sentence(std::string_view call, cublasStatus_t status) {
  return fmt::format("{}: {}", call, cublasGetStatusName(status));
}

std::string sentence(std::string_view call, cufftResult status) {
  return fmt::format("{}: {} ({})", call, name_of(status), static_cast<int>(status));
}

// Our own launches are rejected only if nothing else would work either, or if memory is exhausted.
bool is_recoverable(cudaError_t status) { return is_out_of_memory(status); }

bool is_recoverable(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH ||
         status == CUBLAS_STATUS_INVALID_VALUE || is_out_of_memory(status);
}

bool is_recoverable(cufftResult status) {
  return status == CUFFT_NOT_SUPPORTED || status == CUFFT_INVALID_VALUE ||
         status == CUFFT_INVALID_SIZE || status == CUFFT_NO_WORKSPACE || is_out_of_memory(status);
}

void check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  fail(call, status);
}

void check(cublasStatus_t status, std::string_view call) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(call, status);
}

void check(cufftResult status, std::string_view call) {
  if (status != CUFFT_SUCCESS) fail(call, status);
}

}  // namespace memfathom::cuda
