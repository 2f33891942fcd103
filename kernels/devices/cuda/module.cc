#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "core/error.h"
#include "kernels/devices/cuda/cuda_device.h"
#include "kernels/devices/cuda/environment.h"
#include "kernels/devices/cuda/status.h"
#include "kernels/devices/cuda_module.h"
#include "kernels/devices/module_interface.h"

namespace memfathom::cuda {
namespace {

[[noreturn]] void refuse_driver() {
  int driver = 0;  // stays 0 without a driver
  int runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  const std::string wanted = cuda_version(runtime);
  throw Error(
      ErrorKind::kEnvironment,
      driver == 0
          ? fmt::format("no NVIDIA driver is loaded; install one that runs CUDA {}, or use "
                        "--device cpu",
                        wanted)
          : fmt::format("the NVIDIA driver runs CUDA up to {} and this memfathom was built with "
                        "{}; update the driver, build with a toolkit as old as it, or use "
                        "--device cpu",
                        cuda_version(driver), wanted));
}

int device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    cudaGetLastError();
    refuse_driver();
  }
  if (status == cudaErrorNoDevice) {
    cudaGetLastError();
    throw Error(ErrorKind::kEnvironment,
                "the NVIDIA driver finds no GPU in this machine; use --device cpu");
  }
  check(status, "cudaGetDeviceCount");
  return count;
}

void require(int index) {
  const int count = device_count();
  if (index >= 0 && index < count) return;
  throw Error(ErrorKind::kEnvironment,
              fmt::format("cuda:{} does not exist; this machine has cuda:0{}", index,
                          count > 1 ? fmt::format(" to cuda:{}", count - 1) : std::string()));
}

std::unique_ptr<Device> open(int index) {
  require(index);
  return std::make_unique<CudaDevice>(index);
}

CudaMemory memory(int index) {
  require(index);
  check(cudaSetDevice(index), "cudaSetDevice");
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {Bytes{static_cast<std::int64_t>(free)}, Bytes{static_cast<std::int64_t>(total)}};
}

std::int64_t resident_threads(int index) {
  require(index);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  return std::int64_t{properties.multiProcessorCount} * properties.maxThreadsPerMultiProcessor;
}

}  // namespace
}  // namespace memfathom::cuda

extern "C" __attribute__((visibility("default"))) const memfathom::CudaModule*
memfathom_cuda_module() {
  static const memfathom::CudaModule module{
      memfathom::module_interface(), memfathom::cuda::device_count, memfathom::cuda::open,
      memfathom::cuda::memory, memfathom::cuda::resident_threads};
  return &module;
}
