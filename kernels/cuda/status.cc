#include "kernels/cuda/status.h"

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

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorKind::kEnvironment, what); }

}  // namespace

std::string sentence(std::string_view call, cudaError_t status) {
  return fmt::format("{}: {} ({})", call, cudaGetErrorName(status), cudaGetErrorString(status));
}

std::string sentence(std::string_view call, cublasStatus_t status) {
  return fmt::format("{}: {}", call, cublasGetStatusName(status));
}

std::string sentence(std::string_view call, cufftResult status) {
  return fmt::format("{}: {} ({})", call, name_of(status), static_cast<int>(status));
}

void check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  fail(sentence(call, status));
}

void check(cublasStatus_t status, std::string_view call) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(sentence(call, status));
}

void check(cufftResult status, std::string_view call) {
  if (status != CUFFT_SUCCESS) fail(sentence(call, status));
}

}  // namespace memfathom::cuda
