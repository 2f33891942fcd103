#include "kernels/devices/cuda/driver.h"

#include <cuda_runtime_api.h>

namespace memfathom::cuda {
namespace {

// The release whose signatures <cuda.h> declares for these functions; they have not changed since.
constexpr unsigned int kVersion = 12000;

template <typename Function>
bool find(const char* name, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  if (cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result) !=
      cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  function = reinterpret_cast<Function>(found);
  return result == cudaDriverEntryPointSuccess && found != nullptr;
}

}  // namespace

std::optional<Driver> find_driver() {
  Driver driver;
  if (find("cuMemAddressReserve", driver.reserve) && find("cuMemAddressFree", driver.unreserve) &&
      find("cuMemCreate", driver.create) && find("cuMemRelease", driver.release) &&
      find("cuMemMap", driver.map) && find("cuMemUnmap", driver.unmap) &&
      find("cuMemSetAccess", driver.set_access)) {
    return driver;
  }
  return std::nullopt;
}

std::string module_loading_mode() {
  decltype(&cuModuleGetLoadingMode) get = nullptr;
  CUmoduleLoadingMode mode{};
  if (!find("cuModuleGetLoadingMode", get) || get(&mode) != CUDA_SUCCESS) return {};
  return mode == CU_MODULE_EAGER_LOADING ? "eager" : "lazy";
}

}  // namespace memfathom::cuda
