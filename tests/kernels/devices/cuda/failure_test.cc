// Library failures: nothing leaks, and the device stays usable or reports that it is not.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn_graph.h>
#include <cufft.h>

#include <functional>

#include "kernels/devices/cuda/cuda_device.h"
#include "tests/kernels/devices/cuda/doubled.h"

namespace memfathom::cuda {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class CudaFailureTest : public DoubledTest {};

// One product, one product with bias, one transform and one convolution: every library.
struct Work {
  DeviceTensors tensors;
  GemmCall gemm, biased;
  FftCall fft;
  ConvolutionCall convolution;
  ElementwiseCall add;

  explicit Work(Device& device) : tensors(device) {
    gemm.a = tensors.fp32({2, 2}, {1, 2, 3, 4});
    gemm.b = tensors.fp32({2, 2}, {1, 0, 0, 1});
    gemm.out = tensors.fp32({2, 2}, {0, 0, 0, 0});
    biased = gemm;
    biased.bias = tensors.fp32({2}, {10, 20});
    fft.in = tensors.fp32({1, 16}, std::vector<float>(16, 1));
    fft.out = tensors.make(DType::kComplex64, {1, 9});
    fft.workspace = tensors.bytes(128);
    convolution.query.input = {1, 1, 2, 2};
    convolution.query.weight = {1, 1, 1, 1};
    convolution.query.stride = convolution.query.dilation = {1, 1};
    convolution.query.padding = {0, 0};
    convolution.x = tensors.fp32({1, 1, 2, 2}, {1, 2, 3, 4});
    convolution.w = tensors.fp32({1, 1, 1, 1}, {2});
    convolution.y = tensors.fp32({1, 1, 2, 2}, {0, 0, 0, 0});
    convolution.workspace = tensors.bytes(1 << 20);
    add.op = Elementwise::kAdd;
    add.out = gemm.out;
    add.a = gemm.a;
    add.b = gemm.b;
    add.scalars[0] = 1;
  }

  void run_on(Device& device) {
    device.run(gemm);
    EXPECT_THAT(tensors.read(gemm.out), testing::ElementsAre(1, 2, 3, 4));
    device.run(biased);
    EXPECT_THAT(tensors.read(gemm.out), testing::ElementsAre(11, 22, 13, 24));
    device.run(fft);
    device.run(convolution);
    EXPECT_THAT(tensors.read(convolution.y), testing::ElementsAre(2, 4, 6, 8));
  }
};

struct Creation {
  const char* function;
  int status;
  const char* kind = "environment: ";
};

constexpr const char* kFull = "out_of_memory: ";

// Preparing fails: the first attempt throws and leaves nothing behind, the second succeeds.
TEST_F(CudaFailureTest, FailedCreationLeaksNothingAndTheNextAttemptSucceeds) {
  const Creation creations[] = {
      {"cublasCreate", CUBLAS_STATUS_ALLOC_FAILED, kFull},
      {"cublasSetStream", CUBLAS_STATUS_NOT_INITIALIZED},
      {"cublasSetMathMode", CUBLAS_STATUS_NOT_INITIALIZED},
      {"cublasLtCreate", CUBLAS_STATUS_NOT_INITIALIZED},
      {"cublasLtMatmulDescCreate", CUBLAS_STATUS_ALLOC_FAILED, kFull},
      {"cublasLtMatmulDescSetAttribute", CUBLAS_STATUS_INVALID_VALUE},
      {"cublasLtMatrixLayoutCreate", CUBLAS_STATUS_ALLOC_FAILED, kFull},
      {"cublasLtMatmulPreferenceCreate", CUBLAS_STATUS_ALLOC_FAILED, kFull},
      {"cublasLtMatmulPreferenceSetAttribute", CUBLAS_STATUS_INVALID_VALUE},
      {"cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_INVALID_VALUE},
      {"cufftCreate", CUFFT_ALLOC_FAILED, kFull},
      {"cufftSetAutoAllocation", CUFFT_INTERNAL_ERROR},
      {"cufftMakePlanMany64", CUFFT_ALLOC_FAILED, kFull},
      {"cufftSetStream", CUFFT_INVALID_PLAN},
      {"cufftSetWorkArea", CUFFT_INVALID_PLAN},
      {"cudnnCreate", CUDNN_STATUS_NOT_INITIALIZED},
      {"cudnnCreate", CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, kFull},
      {"cudnnSetStream", CUDNN_STATUS_BAD_PARAM},
      {"cudnnBackendCreateDescriptor", CUDNN_STATUS_ALLOC_FAILED},
      {"cudnnBackendSetAttribute", CUDNN_STATUS_BAD_PARAM},
      {"cudnnBackendFinalize", CUDNN_STATUS_NOT_SUPPORTED}};
  for (const Creation& creation : creations) {
    SCOPED_TRACE(creation.function);
    doubles::reset();
    {
      CudaDevice device(0);
      Work work(device);
      doubles::fail(creation.function, 1, creation.status);
      EXPECT_THAT(error_of([&] { work.run_on(device); }), StartsWith(creation.kind));
      work.run_on(device);
      device.synchronize();
    }
    EXPECT_THAT(doubles::leaks(), testing::IsEmpty());
  }
}

TEST_F(CudaFailureTest, SetsAnEarlierWorkspaceOnTheHandleOnceItExists) {
  CudaDevice device(0);
  Work work(device);
  device.set_gemm_workspace(work.tensors.bytes(8519680));
  EXPECT_EQ(doubles::calls_of("cublasSetWorkspace"), 0);
  doubles::fail("cublasSetWorkspace", 1, CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(error_of([&] { device.run(work.gemm); }), HasSubstr("cublasSetWorkspace"));
  work.run_on(device);
  EXPECT_EQ(doubles::calls_of("cublasSetWorkspace"), 2);
  device.set_gemm_workspace(work.tensors.bytes(1 << 20));
  EXPECT_EQ(doubles::calls_of("cublasSetWorkspace"), 3);
  device.set_gemm_workspace({});
  work.run_on(device);
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
}

TEST_F(CudaFailureTest, DoubleRefusesAProductWithAFreedWorkspace) {
  CudaDevice device(0);
  Work work(device);
  const auto address = device.memory().allocate(Bytes{1 << 20}, 0);
  device.set_gemm_workspace(
      {reinterpret_cast<void*>(*address), DType::kUint8, {std::int64_t{1} << 20}, {1}});
  device.run(work.gemm);
  device.memory().release(*address, Bytes{1 << 20});
  EXPECT_THAT(error_of([&] { device.run(work.gemm); }), HasSubstr("EXECUTION_FAILED"));
  EXPECT_THAT(doubles::refusals(), testing::ElementsAre(HasSubstr("the workspace is gone")));
}

TEST_F(CudaFailureTest, FailedOpenLeaksNothing) {
  for (const char* function : {"cudaSetDevice", "cudaMemGetInfo", "cudaStreamCreateWithFlags"}) {
    doubles::reset();
    doubles::fail(function, 1, cudaErrorMemoryAllocation);
    EXPECT_THAT(error_of([] { CudaDevice device(0); }), HasSubstr(function));
    EXPECT_THAT(doubles::leaks(), testing::IsEmpty());
    CudaDevice device(0);
    device.synchronize();
  }
}

// Launching fails: from then on the device refuses all calls instead of returning wrong results.
TEST_F(CudaFailureTest, AfterAFailedLaunchTheDeviceIsUnusable) {
  struct Launch {
    const char* function;
    int status;
    std::function<void(CudaDevice&, Work&)> work;
  };
  std::vector<float> host(4);
  const auto add = [](CudaDevice& device, Work& work) { device.run(work.add); };
  const Launch launches[] = {{"cudaLaunchKernel", cudaErrorInvalidConfiguration, add},
                             {"cudaLaunchKernel", cudaErrorIllegalAddress, add},
                             {"cublasGemmEx", CUBLAS_STATUS_EXECUTION_FAILED,
                              [](CudaDevice& device, Work& work) { device.run(work.gemm); }},
                             {"cublasLtMatmul", CUBLAS_STATUS_EXECUTION_FAILED,
                              [](CudaDevice& device, Work& work) { device.run(work.biased); }},
                             {"cufftExecR2C", CUFFT_EXEC_FAILED,
                              [](CudaDevice& device, Work& work) { device.run(work.fft); }},
                             {"cudnnBackendExecute", CUDNN_STATUS_EXECUTION_FAILED,
                              [](CudaDevice& device, Work& work) { device.run(work.convolution); }},
                             {"cudaMemcpyAsync", cudaErrorIllegalAddress,
                              [&](CudaDevice& device, Work& work) {
                                device.copy_to_host(host.data(), work.gemm.a.data, Bytes{16});
                              }},
                             {"cudaMemcpyAsync", cudaErrorIllegalAddress,
                              [&](CudaDevice& device, Work& work) {
                                device.copy_from_host(work.gemm.a.data, host.data(), Bytes{16});
                              }},
                             {"cudaStreamSynchronize", cudaErrorLaunchFailure,
                              [&](CudaDevice& device, Work& work) {
                                device.copy_to_host(host.data(), work.gemm.a.data, Bytes{16});
                              }},
                             {"cudaStreamSynchronize", cudaErrorLaunchFailure,
                              [&](CudaDevice& device, Work& work) {
                                device.copy_from_host(work.gemm.a.data, host.data(), Bytes{16});
                              }},
                             {"cudaStreamSynchronize", cudaErrorLaunchFailure,
                              [](CudaDevice& device, Work&) { device.synchronize(); }}};
  for (const Launch& launch : launches) {
    SCOPED_TRACE(launch.function);
    doubles::reset();
    {
      CudaDevice device(0);
      Work work(device);
      doubles::fail(launch.function, 1, launch.status);
      EXPECT_THAT(error_of([&] { launch.work(device, work); }), StartsWith("environment: "));
      for (const std::function<void()>& next :
           {std::function<void()>([&] { device.run(work.add); }),
            std::function<void()>([&] { device.run(work.gemm); }),
            std::function<void()>([&] { device.run(work.fft); }),
            std::function<void()>([&] { device.run(work.convolution); }),
            std::function<void()>([&] { device.synchronize(); }),
            std::function<void()>([&] { device.environment(); }),
            std::function<void()>([&] { device.set_gemm_workspace({}); }),
            std::function<void()>(
                [&] { device.copy_to_host(host.data(), work.gemm.a.data, Bytes{16}); }),
            std::function<void()>(
                [&] { device.copy_from_host(work.gemm.a.data, host.data(), Bytes{16}); }),
            std::function<void()>([&] { device.workspaces().convolution(work.convolution.query); }),
            std::function<void()>([&] { device.workspaces().fft({}); })}) {
        EXPECT_THAT(error_of(next), HasSubstr("cuda:0 is unusable since "));
      }
    }
    EXPECT_THAT(doubles::leaks(), testing::IsEmpty());
  }
}

// An old GPU has no product of bf16, a library no transform of that length: the next call works.
TEST_F(CudaFailureTest, DeviceStaysUsableAfterALibraryRefusesACall) {
  CudaDevice device(0);
  Work work(device);
  doubles::fail("cublasGemmEx", 1, CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_THAT(error_of([&] { device.run(work.gemm); }),
              StartsWith("environment: a matrix product: "));
  doubles::fail("cufftExecR2C", 1, CUFFT_NOT_SUPPORTED);
  EXPECT_THAT(error_of([&] { device.run(work.fft); }),
              StartsWith("environment: a Fourier transform: "));
  for (const int status : {CUDNN_STATUS_NOT_SUPPORTED_SHAPE, CUDNN_STATUS_BAD_PARAM}) {
    doubles::fail_always("cudnnBackendExecute", status);
    EXPECT_THAT(error_of([&] { device.run(work.convolution); }),
                StartsWith("environment: cuDNN: cudnnBackendExecute failed"));
    doubles::stop_failing();
  }
  work.run_on(device);
  device.synchronize();
}

// With lazy loading the first launch of a kernel allocates its code: on a nearly full GPU that is
// out of memory, and the device stays usable.
TEST_F(CudaFailureTest, LazyLoadingWithoutMemoryIsOutOfMemoryAndLeavesTheDeviceUsable) {
  CudaDevice device(0);
  Work work(device);
  const auto told = [](std::string function, int status, const std::function<void()>& call) {
    doubles::fail_always(std::move(function), status);
    std::string error = error_of(call);
    doubles::stop_failing();
    return error;
  };
  EXPECT_THAT(told("cudaLaunchKernel", cudaErrorMemoryAllocation, [&] { device.run(work.add); }),
              StartsWith("out_of_memory: the launch of an element-wise kernel: "));
  EXPECT_THAT(told("cublasGemmEx", CUBLAS_STATUS_ALLOC_FAILED, [&] { device.run(work.gemm); }),
              StartsWith("out_of_memory: a matrix product: "));
  EXPECT_THAT(told("cufftExecR2C", CUFFT_ALLOC_FAILED, [&] { device.run(work.fft); }),
              StartsWith("out_of_memory: a Fourier transform: "));
  for (const char* function : {"cudnnBackendFinalize(plan)", "cudnnBackendExecute"}) {
    EXPECT_THAT(told(function, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
                     [&] { device.run(work.convolution); }),
                StartsWith("out_of_memory: "));
  }
  work.run_on(device);
  device.synchronize();
}

TEST_F(CudaFailureTest, AnyNextCallReportsAStickyError) {
  CudaDevice device(0);
  const GemmCall gemm = [&] {
    GemmCall call;
    const auto address = device.memory().allocate(Bytes{512}, 0);
    call.a = call.b = call.out = {reinterpret_cast<void*>(*address), DType::kFp32, {2, 2}, {2, 1}};
    return call;
  }();
  doubles::fail("cudaLaunchKernel", 1, cudaErrorIllegalAddress, true);
  ElementwiseCall fill{.op = Elementwise::kFill, .out = gemm.out, .a = {}, .b = {}, .c = {}};
  EXPECT_THAT(error_of([&] { device.run(fill); }), HasSubstr("cudaErrorIllegalAddress"));
  EXPECT_THAT(error_of([&] { device.run(gemm); }), HasSubstr("unusable"));
}

TEST_F(CudaFailureTest, AKernelThatTouchesHostMemoryPoisonsTheDevice) {
  CudaDevice device(0);
  std::vector<float> host(4);
  const Operand operand{host.data(), DType::kFp32, {4}, {1}};
  EXPECT_THAT(error_of([&] {
                device.run(ElementwiseCall{
                    .op = Elementwise::kFill, .out = operand, .a = {}, .b = {}, .c = {}});
              }),
              HasSubstr("the launch of an element-wise kernel: cudaErrorIllegalAddress"));
}

}  // namespace
}  // namespace memfathom::cuda
