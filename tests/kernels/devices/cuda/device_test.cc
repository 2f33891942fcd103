#include <cuda_runtime_api.h>

#include "kernels/devices/cuda/cuda_device.h"
#include "kernels/devices/cuda_module.h"
#include "kernels/devices/module_interface.h"
#include "kernels/devices/selftest/selftest.h"
#include "tests/kernels/devices/cuda/doubled.h"

extern "C" const memfathom::CudaModule* memfathom_cuda_module();

namespace memfathom::cuda {
namespace {

using namespace literals;
using testing::HasSubstr;
using testing::StrEq;

class CudaDeviceTest : public DoubledTest {};

TEST_F(CudaDeviceTest, TheEnvironmentNamesTheGpuAndTheLibraries) {
  doubles::reset({.name = "NVIDIA L4", .major = 8, .minor = 9, .memory = std::size_t{22} << 30});
  const CudaDevice device(0);
  const Environment environment = device.environment();
  EXPECT_EQ(environment.gpu, "NVIDIA L4");
  EXPECT_EQ(environment.architecture, "sm_89");
  EXPECT_EQ(environment.memory_total, 22_GiB);
  EXPECT_TRUE(environment.ecc);
  EXPECT_EQ(environment.driver, "CUDA 13.0");
  EXPECT_EQ(environment.cuda, "13.0");
  EXPECT_EQ(environment.cublas, "13.1.2");
  EXPECT_EQ(environment.cudnn, "9.19.0");
  EXPECT_EQ(environment.cufft, "12.0.0");
  EXPECT_EQ(environment.framework, "memfathom");
  EXPECT_FALSE(environment.framework_version.empty());
  EXPECT_THAT(environment.os, HasSubstr("Linux"));
}

TEST_F(CudaDeviceTest, TheEnvironmentSaysWhenKernelsAreLoaded) {
  const CudaDevice device(0);
  EXPECT_EQ(device.environment().module_loading, "lazy");
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  EXPECT_EQ(device.environment().module_loading, "eager");
  unsetenv("CUDA_MODULE_LOADING");
  doubles::fail("cuModuleGetLoadingMode", 1, CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(device.environment().module_loading, "") << "not known, and not guessed";
}

TEST_F(CudaDeviceTest, TheModuleTellsHowManyThreadsTheGpuHolds) {
  EXPECT_EQ(memfathom_cuda_module()->resident_threads(0), 108 * 2048);
  EXPECT_THAT(error_of([] { memfathom_cuda_module()->resident_threads(7); }),
              HasSubstr("cuda:7 does not exist"));
}

TEST_F(CudaDeviceTest, ReportsAnUnreadableVersionAsAnError) {
  for (const char* function : {"cudaGetDeviceProperties", "cudaDriverGetVersion",
                               "cudaRuntimeGetVersion", "cublasGetProperty", "cufftGetProperty"}) {
    const CudaDevice device(0);
    doubles::fail(function, 1, 1);
    EXPECT_THAT(error_of([&] { device.environment(); }), HasSubstr(function));
    EXPECT_EQ(device.environment().cuda, "13.0");
  }
}

TEST_F(CudaDeviceTest, EveryCallMakesItsDeviceCurrent) {
  doubles::reset({.devices = 2});
  CudaDevice first(0);
  CudaDevice second(1);
  EXPECT_EQ(second.name(), "cuda:1");
  const int before = doubles::calls_of("cudaSetDevice");
  first.synchronize();
  EXPECT_EQ(doubles::calls_of("cudaSetDevice"), before + 1);
  EXPECT_TRUE(first.computes());
}

TEST_F(CudaDeviceTest, RefusesAHeadTooWideForAWarp) {
  CudaDevice device(0);
  AttentionCall call;
  call.q.shape = {1, 1, 1, 257};
  EXPECT_THAT(error_of([&] { device.run(call); }),
              HasSubstr("input: attention on cuda:0: a head has 257 features; at most 256"));
}

TEST_F(CudaDeviceTest, RefusesUnsupportedComplexOperands) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  const Operand z = tensors.make(DType::kComplex64, {4});
  EXPECT_THAT(
      error_of([&] {
        device.run(ElementwiseCall{.op = Elementwise::kTanh, .out = z, .a = z, .b = {}, .c = {}});
      }),
      HasSubstr("no complex form"));
  device.synchronize();
}

TEST_F(CudaDeviceTest, TheModuleCountsAndOpensDevicesAndReadsTheirMemory) {
  doubles::reset({.devices = 2});
  const CudaModule& module = *memfathom_cuda_module();
  EXPECT_EQ(module.interface, module_interface());
  EXPECT_EQ(module.device_count(), 2);
  EXPECT_EQ(module.open(1)->name(), "cuda:1");
  EXPECT_EQ(module.memory(0).total, 8_GiB);
  EXPECT_EQ(module.memory(0).free, 8_GiB - 256_MiB) << "the context";
  EXPECT_THAT(error_of([&] { module.open(2); }),
              StrEq("environment: cuda:2 does not exist; this machine has cuda:0 to cuda:1"));
}

TEST_F(CudaDeviceTest, ReportsAMissingDriverOrGpuInOneSentence) {
  const CudaModule& module = *memfathom_cuda_module();
  doubles::reset({.driver = 0});
  EXPECT_THAT(
      error_of([&] { module.open(0); }),
      HasSubstr("environment: no NVIDIA driver is loaded; install one that runs CUDA 13.0"));
  doubles::reset({.driver = 12040});
  EXPECT_THAT(
      error_of([&] { module.open(0); }),
      HasSubstr("environment: the NVIDIA driver runs CUDA up to 12.4 and this memfathom was "
                "built with 13.0; update the driver"));
  doubles::reset({.devices = 0});
  EXPECT_THAT(error_of([&] { module.device_count(); }),
              HasSubstr("environment: the NVIDIA driver finds no GPU"));
  doubles::reset();
  EXPECT_THAT(error_of([&] { module.open(-1); }),
              StrEq("environment: cuda:-1 does not exist; this machine has cuda:0"));
  doubles::fail("cudaGetDeviceCount", 1, cudaErrorInitializationError);
  EXPECT_THAT(error_of([&] { module.device_count(); }), HasSubstr("cudaGetDeviceCount"));
}

}  // namespace
}  // namespace memfathom::cuda
