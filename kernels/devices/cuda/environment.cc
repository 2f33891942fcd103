#include "kernels/devices/cuda/environment.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cufft.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <array>

#include "kernels/devices/cuda/cudnn/plan.h"
#include "kernels/devices/cuda/driver.h"
#include "kernels/devices/cuda/status.h"

namespace memfathom::cuda {
namespace {

template <typename Get>
std::string library_version(Get get, const char* call) {
  std::array<int, 3> parts{};
  const std::array<libraryPropertyType, 3> names{MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
  for (std::size_t i = 0; i < parts.size(); ++i) check(get(names[i], &parts[i]), call);
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

cudaDeviceProp properties_of(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties;
}

std::string operating_system() {
  utsname names{};
  if (uname(&names) != 0) return "unknown";
  return fmt::format("{} {}", names.sysname, names.release);
}

}  // namespace

std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

int compute_capability(int device) {
  const cudaDeviceProp properties = properties_of(device);
  return 10 * properties.major + properties.minor;
}

Environment read_environment(int device) {
  const cudaDeviceProp properties = properties_of(device);
  int driver = 0;
  int runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  Environment environment;
  environment.gpu = properties.name;
  environment.architecture = fmt::format("sm_{}{}", properties.major, properties.minor);
  environment.memory_total = Bytes{static_cast<std::int64_t>(properties.totalGlobalMem)};
  environment.ecc = properties.ECCEnabled != 0;
  environment.driver = "CUDA " + cuda_version(driver);
  environment.cuda = cuda_version(runtime);
  environment.cublas = library_version(cublasGetProperty, "cublasGetProperty");
  environment.cudnn = cudnn::version();
  environment.cufft = library_version(cufftGetProperty, "cufftGetProperty");
  environment.module_loading = module_loading_mode();
  environment.framework = "memfathom";
  environment.framework_version = MEMFATHOM_VERSION;
  environment.os = operating_system();
  return environment;
}

}  // namespace memfathom::cuda
