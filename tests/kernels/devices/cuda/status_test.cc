// Error messages of every library status, and queries that never reach cuDNN.
#include "kernels/devices/cuda/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "kernels/devices/cuda/cuda_device.h"
#include "kernels/devices/cuda/cudnn/plan.h"
#include "kernels/workspaces/architectures.h"
#include "tests/kernels/devices/cuda/doubled.h"

namespace memfathom::cuda {
namespace {

using testing::HasSubstr;

TEST(CudaStatusTest, NamesEveryCufftStatus) {
  for (const auto& [status, name] : {std::pair{CUFFT_INVALID_PLAN, "CUFFT_INVALID_PLAN"},
                                     std::pair{CUFFT_ALLOC_FAILED, "CUFFT_ALLOC_FAILED"},
                                     std::pair{CUFFT_INVALID_VALUE, "CUFFT_INVALID_VALUE"},
                                     std::pair{CUFFT_INTERNAL_ERROR, "CUFFT_INTERNAL_ERROR"},
                                     std::pair{CUFFT_EXEC_FAILED, "CUFFT_EXEC_FAILED"},
                                     std::pair{CUFFT_SETUP_FAILED, "CUFFT_SETUP_FAILED"},
                                     std::pair{CUFFT_INVALID_SIZE, "CUFFT_INVALID_SIZE"},
                                     std::pair{CUFFT_NO_WORKSPACE, "CUFFT_NO_WORKSPACE"},
                                     std::pair{CUFFT_NOT_SUPPORTED, "cuFFT status"}}) {
    EXPECT_EQ(sentence("cufftCreate", status),
              std::string("cufftCreate: ") + name + " (" + std::to_string(int(status)) + ")");
  }
}

TEST(CudaStatusTest, ExplainsWhatToDoForAGpuWithoutCompiledKernels) {
  EXPECT_THAT(sentence("the launch of a norm", cudaErrorNoKernelImageForDevice),
              HasSubstr("build memfathom on this machine"));
  EXPECT_THAT(sentence("cudaSetDevice", cudaErrorDevicesUnavailable), HasSubstr("exclusive mode"));
}

TEST(CudaStatusTest, ReportsFailureAsAnEnvironmentError) {
  check(cudaSuccess, "cudaMalloc");
  check(CUBLAS_STATUS_SUCCESS, "cublasCreate");
  check(CUFFT_SUCCESS, "cufftCreate");
  EXPECT_THAT(error_of([] { check(cudaErrorMemoryAllocation, "cudaMalloc of 2 MiB"); }),
              HasSubstr("out_of_memory: cudaMalloc of 2 MiB: "));
  EXPECT_THAT(error_of([] { check(cudaErrorInvalidValue, "cudaMalloc of 2 MiB"); }),
              HasSubstr("environment: cudaMalloc of 2 MiB: "));
  EXPECT_THAT(error_of([] { check(CUBLAS_STATUS_ALLOC_FAILED, "cublasCreate"); }),
              HasSubstr("out_of_memory: cublasCreate: "));
  EXPECT_THAT(error_of([] { check(CUFFT_INVALID_SIZE, "cufftMakePlanMany64"); }),
              HasSubstr("environment: cufftMakePlanMany64: CUFFT_INVALID_SIZE"));
}

class CudnnPlanningTest : public DoubledTest {};

ConvolutionQuery good_query() {
  ConvolutionQuery query;
  query.input = {2, 4, 8, 8};
  query.weight = {6, 4, 3, 3};
  query.stride = query.padding = query.dilation = {1, 1};
  return query;
}

TEST_F(CudnnPlanningTest, NeverQueriesAContradictoryConvolution) {
  using Change = std::function<void(ConvolutionQuery&)>;
  const std::pair<const char*, Change> changes[] = {
      {"one to three spatial extents",
       [](auto& q) {
         q.input = {2, 4};
       }},
      {"the weight's rank must be the input's",
       [](auto& q) {
         q.weight = {6, 4, 3};
       }},
      {"one value per spatial extent", [](auto& q) { q.dilation = {1}; }},
      {"output padding must have one value", [](auto& q) { q.output_padding = {1}; }},
      {"must be at least 1",
       [](auto& q) {
         q.stride = {0, 1};
       }},
      {"padding must not be negative",
       [](auto& q) {
         q.padding = {-1, 1};
       }},
      {"the groups must divide", [](auto& q) { q.groups = 4; }},
      {"the input's channels", [](auto& q) { q.input[1] = 5; }},
      {"larger than the padded input",
       [](auto& q) {
         q.weight = {6, 4, 30, 3};
       }},
      {"type int64", [](auto& q) { q.dtype = DType::kInt64; }}};
  CudaDevice device(0);
  for (const auto& [words, change] : changes) {
    ConvolutionQuery query = good_query();
    change(query);
    EXPECT_THAT(error_of([&] { device.workspaces().convolution(query); }), HasSubstr(words));
  }
  EXPECT_EQ(doubles::calls_of("cudnnBackendFinalize(plan)"), 0);
}

TEST_F(CudnnPlanningTest, SkipsEnginesThatRoundInputsOrReportNoWorkspace) {
  const auto device = cudnn::DeviceProperties::from_json(to_cudnn_json(describe_gpu("sm_80")));
  const cudnn::Graph graph(cudnn::to_cudnn(good_query()));
  EXPECT_EQ(cudnn::first_engine(graph, device).workspace, Bytes{1 << 20});
  const auto all = cudnn::all_engines(graph, device);
  EXPECT_EQ(all.size(), 3U);
  EXPECT_EQ(cudnn::largest_workspace(all), Bytes{1 << 22});
  EXPECT_EQ(cudnn::first_engine(graph, device, {.allow_tf32 = false}).workspace, Bytes{1 << 22});
  EXPECT_EQ(cudnn::all_engines(graph, device, {.deterministic = true}).size(), 2U);
}

TEST_F(CudnnPlanningTest, ReportsTheFirstListsReasonIfNoEngineExists) {
  doubles::fail_always("cudnnBackendFinalize(heuristics)", CUDNN_STATUS_NOT_SUPPORTED);
  const auto device = cudnn::DeviceProperties::from_json(to_cudnn_json(describe_gpu("sm_80")));
  const cudnn::Graph graph(cudnn::to_cudnn(good_query()));
  EXPECT_THAT(error_of([&] { cudnn::first_engine(graph, device); }),
              HasSubstr("cuDNN has no engine for this operation on this device (cuDNN: "
                        "cudnnBackendFinalize(heuristics) failed"));
  EXPECT_THAT(error_of([&] { cudnn::all_engines(graph, device); }), HasSubstr("has no engine"));
}

TEST_F(CudnnPlanningTest, FormatsTheVersionWithDots) { EXPECT_EQ(cudnn::version(), "9.19.0"); }

}  // namespace
}  // namespace memfathom::cuda
