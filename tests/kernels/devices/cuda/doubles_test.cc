// The doubles refuse what the real libraries refuse; otherwise passing tests would prove nothing.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cufft.h>

#include <thread>
#include <vector>

#include "kernels/devices/cuda/handles.h"
#include "tests/kernels/devices/cuda/doubled.h"

namespace memfathom::cuda {
namespace {

using testing::Contains;
using testing::HasSubstr;

class DoublesTest : public DoubledTest {
 protected:
  void* allocate(std::size_t bytes) {
    void* address = nullptr;
    EXPECT_EQ(cudaMalloc(&address, bytes), cudaSuccess);
    return address;
  }
};

TEST_F(DoublesTest, DeviceMemoryIsNotHostMemory) {
  void* device = allocate(64);
  float host[16] = {};
  EXPECT_EQ(cudaMemcpyAsync(host, host, 64, cudaMemcpyHostToDevice, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(device, device, 64, cudaMemcpyHostToDevice, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(device, host, 65, cudaMemcpyHostToDevice, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(host, 0, 64, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaErrorInvalidValue);
  EXPECT_EQ(doubles::host_view(device, 1), nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(DoublesTest, ReportsAnUncheckedError) {
  EXPECT_EQ(cudaFree(reinterpret_cast<void*>(8)), cudaErrorInvalidValue);
  EXPECT_THAT(doubles::leaks(), Contains(HasSubstr("an error nobody asked for")));
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(DoublesTest, KeepsErrorsPerThread) {
  EXPECT_EQ(cudaFree(reinterpret_cast<void*>(8)), cudaErrorInvalidValue);
  std::thread([] { EXPECT_EQ(cudaGetLastError(), cudaSuccess); }).join();
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(DoublesTest, AllowsConcurrentRuntimeCalls) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < kRounds; ++round) {
        void* device = allocate(64);
        std::size_t available = 0;
        std::size_t total = 0;
        EXPECT_EQ(cudaMemGetInfo(&available, &total), cudaSuccess);
        EXPECT_LT(available, total);
        EXPECT_EQ(cudaFree(device), cudaSuccess);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(doubles::calls_of("cudaMalloc"), kThreads * kRounds);
  EXPECT_EQ(doubles::bytes_in_use(), 0U);
}

TEST_F(DoublesTest, CompletesACopyToTheHostOnlyAtSynchronization) {
  void* device = allocate(64);
  const Stream stream = make_stream();
  ASSERT_EQ(cudaMemsetAsync(device, 3, 64, stream.get()), cudaSuccess);
  char host = 0;
  ASSERT_EQ(cudaMemcpyAsync(&host, device, 1, cudaMemcpyDeviceToHost, stream.get()), cudaSuccess);
  EXPECT_EQ(host, 0);
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_EQ(host, 3);
  cudaFree(device);
}

TEST_F(DoublesTest, APoisonedContextFailsEveryCall) {
  doubles::fail("cudaMemsetAsync", 1, cudaErrorIllegalAddress, true);
  void* device = allocate(64);
  EXPECT_EQ(cudaMemsetAsync(device, 0, 64, nullptr), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  cudaFree(device);
}

TEST_F(DoublesTest, CublasRefusesWrongLeadingDimensionsForeignMemoryAndStaleHandles) {
  auto* device = static_cast<float*>(allocate(1024));
  float host[16] = {};
  const float one = 1;
  const Stream stream = make_stream();
  CublasHandle handle = make_cublas_handle(stream.get());
  const auto multiply = [&](cublasHandle_t h, const void* a, cudaDataType type, int lda,
                            cublasComputeType_t compute) {
    return cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 3, &one, a, type, lda, device, type, 3,
                        &one, device, type, 3, compute, CUBLAS_GEMM_DEFAULT);
  };
  EXPECT_EQ(multiply(handle.get(), device, CUDA_R_32F, 3, CUBLAS_COMPUTE_32F),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(multiply(handle.get(), device, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(handle.get(), host, CUDA_R_32F, 3, CUBLAS_COMPUTE_32F),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(handle.get(), device, CUDA_R_64F, 3, CUBLAS_COMPUTE_32F),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cublasSetWorkspace(handle.get(), device + 1, 512), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetWorkspace(handle.get(), device, 2048), CUBLAS_STATUS_INVALID_VALUE);
  cublasHandle_t stale = handle.get();
  handle.reset();
  EXPECT_EQ(multiply(stale, device, CUDA_R_32F, 3, CUBLAS_COMPUTE_32F),
            CUBLAS_STATUS_NOT_INITIALIZED);
  cudaFree(device);
}

TEST_F(DoublesTest, CufftRefusesAMissingWorkAreaAndUsesTheSpectrumOfAnInverseAsScratch) {
  auto* device = static_cast<char*>(allocate(8192));
  const Stream stream = make_stream();
  cufftHandle plan = 0;
  long long extents[] = {4, 4};
  std::size_t work = 0;
  ASSERT_EQ(cufftCreate(&plan), CUFFT_SUCCESS);
  ASSERT_EQ(cufftSetAutoAllocation(plan, 0), CUFFT_SUCCESS);
  ASSERT_EQ(
      cufftMakePlanMany64(plan, 2, extents, nullptr, 1, 0, nullptr, 1, 0, CUFFT_C2R, 1, &work),
      CUFFT_SUCCESS);
  ASSERT_EQ(cufftSetStream(plan, stream.get()), CUFFT_SUCCESS);
  auto* in = reinterpret_cast<cufftComplex*>(device);
  auto* out = reinterpret_cast<cufftReal*>(device + 2048);
  cudaMemsetAsync(device, 0, 1024, stream.get());
  EXPECT_EQ(cufftExecC2R(plan, in, out), CUFFT_NO_WORKSPACE);
  ASSERT_EQ(cufftSetWorkArea(plan, device + 4096), CUFFT_SUCCESS);
  EXPECT_EQ(cufftExecC2R(plan, in, out), CUFFT_SUCCESS);
  EXPECT_NE(*static_cast<const char*>(doubles::host_view(in, 1)), 0);
  EXPECT_EQ(cufftExecR2C(plan, out, in), CUFFT_INVALID_PLAN);
  cufftDestroy(plan);
  EXPECT_EQ(cufftExecC2R(plan, in, out), CUFFT_INVALID_PLAN);
  cudaFree(device);
}

}  // namespace
}  // namespace memfathom::cuda
