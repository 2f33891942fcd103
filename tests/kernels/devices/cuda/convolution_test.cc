#include <cudnn_graph.h>

#include "kernels/devices/cuda/cuda_device.h"
#include "kernels/devices/selftest/harness.h"
#include "tests/kernels/devices/cuda/doubled.h"

namespace memfathom::cuda {
namespace {

using namespace literals;
using testing::HasSubstr;

class CudaConvolutionTest : public DoubledTest {};

ConvolutionCall small_call(DeviceTensors& tensors, bool benchmark = false) {
  ConvolutionCall call;
  call.query.input = {1, 1, 2, 2};
  call.query.weight = {1, 1, 1, 1};
  call.query.stride = call.query.dilation = {1, 1};
  call.query.padding = {0, 0};
  call.query.benchmark = benchmark;
  call.x = tensors.fp32({1, 1, 2, 2}, {1, 2, 3, 4});
  call.w = tensors.fp32({1, 1, 1, 1}, {2});
  call.y = tensors.fp32({1, 1, 2, 2}, {0, 0, 0, 0});
  return call;
}

TEST_F(CudaConvolutionTest, UsesTheWorkspaceOfTheFirstEngine) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  const ConvolutionCall call = small_call(tensors);
  EXPECT_EQ(device.workspaces().convolution(call.query).bytes, 1_MiB);
  EXPECT_EQ(device.workspaces().convolution(call.query).source, Source::kMeasured);
}

TEST_F(CudaConvolutionTest, RefusesASmallWorkspaceBeforeTheLaunch) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  ConvolutionCall call = small_call(tensors);
  call.workspace = tensors.bytes((1 << 20) - 1);
  EXPECT_THAT(error_of([&] { device.run(call); }),
              HasSubstr("the workspace has 1048575 B; cuDNN needs 1048576 B"));
  EXPECT_EQ(doubles::calls_of("cudnnBackendExecute"), 0);
  call.workspace = tensors.bytes(1 << 20);
  device.run(call);
  EXPECT_THAT(tensors.read(call.y), testing::ElementsAre(2, 4, 6, 8));
}

TEST_F(CudaConvolutionTest, RefusesOperandsThatDoNotMatchTheQuery) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  const ConvolutionCall good = small_call(tensors);
  ConvolutionCall call = good;
  call.y = {};
  EXPECT_THAT(error_of([&] { device.run(call); }), HasSubstr("the output is missing"));
  call = good;
  call.x.strides = {4, 4, 1, 2};
  EXPECT_THAT(error_of([&] { device.run(call); }),
              HasSubstr("the input of strides [4, 4, 1, 2] is not dense"));
  call = good;
  call.w.dtype = DType::kFp16;
  EXPECT_THAT(error_of([&] { device.run(call); }), HasSubstr("the weight is fp16"));
  call = good;
  call.y.shape = {1, 1, 1, 4};
  EXPECT_THAT(error_of([&] { device.run(call); }),
              HasSubstr("the output has extents [1, 1, 1, 4]"));
  device.synchronize();
}

// A slice along the channels is dense at batch 1 and begins anywhere: here at 1176 bytes, behind 12
// channels of 7x7 in fp16.
TEST_F(CudaConvolutionTest, DescribesAViewWithItsOwnAlignment) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  ConvolutionCall call;
  call.query.dtype = DType::kFp16;
  call.query.input = {1, 4, 7, 7};
  call.query.weight = {4, 4, 1, 1};
  call.query.stride = call.query.dilation = {1, 1};
  call.query.padding = {0, 0};
  const Operand joined = tensors.make(DType::kFp16, {1, 16, 7, 7});
  call.x = tensors.make(DType::kFp16, {1, 4, 7, 7});
  call.w = tensors.make(DType::kFp16, {4, 4, 1, 1});
  call.y = tensors.make(DType::kFp16, {1, 4, 7, 7});
  for (const Operand& operand : {joined, call.w}) {
    device.run(ElementwiseCall{
        .op = Elementwise::kFill, .out = operand, .a = {}, .b = {}, .c = {}, .scalars = {0.5}});
  }
  call.x.data = static_cast<char*>(joined.data) + 1176;
  call.workspace = tensors.bytes(device.workspaces().convolution(call.query).bytes.count());
  device.run(call);
  device.run(call);
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
  std::vector<std::uint16_t> content(196);  // 4 channels of 7 x 7
  device.copy_to_host(content.data(), call.y.data, Bytes{392});
  EXPECT_THAT(content, testing::Each(0x3C00));  // 1.0
  // One plan for the question, one for the view, and a third for another address.
  EXPECT_EQ(doubles::calls_of("cudnnBackendFinalize(plan)"), 2);
  call.x.data = static_cast<char*>(joined.data) + 2;
  device.run(call);
  EXPECT_EQ(doubles::calls_of("cudnnBackendFinalize(plan)"), 3);
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
}

TEST_F(CudaConvolutionTest, RunsAViewWithinTheGivenWorkspace) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  ConvolutionCall call = small_call(tensors);
  call.y.data = static_cast<char*>(tensors.bytes(1024).data) + 4;
  device.run(call);  // none: the engine of the fallback list
  EXPECT_THAT(tensors.read(call.y), testing::ElementsAre(2, 4, 6, 8));
  // In benchmark mode the workspace is smaller after the aligned convolution has chosen an engine.
  call.query.benchmark = true;
  call.workspace = tensors.bytes(4 << 20);
  doubles::set_elapsed({3, 1, 2});  // engines of 1 MiB, 4 MiB and 0
  device.run(call);
  call.workspace = {};
  device.run(call);
  EXPECT_THAT(tensors.read(call.y), testing::ElementsAre(2, 4, 6, 8));
}

TEST_F(CudaConvolutionTest, UsesTheNextEngineIfOneCannotBeBuilt) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  const ConvolutionCall call = small_call(tensors);
  doubles::fail("cudnnBackendFinalize(plan)", 1, CUDNN_STATUS_NOT_SUPPORTED);
  doubles::fail("cudnnBackendFinalize(plan)", 2, CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(device.workspaces().convolution(call.query).bytes, 4_MiB);
}

TEST_F(CudaConvolutionTest, UsesTheNextFittingEngineIfOneIsRefusedAtRunTime) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  ConvolutionCall call = small_call(tensors);
  call.workspace = tensors.bytes(1 << 20);
  doubles::fail("cudnnBackendExecute", 1, CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
  device.run(call);
  EXPECT_THAT(tensors.read(call.y), testing::ElementsAre(2, 4, 6, 8));
  // The engine of 4 MiB came next and did not fit.
  EXPECT_EQ(device.workspaces().convolution(call.query).bytes, 0_B);
  EXPECT_EQ(doubles::calls_of("cudnnBackendExecute"), 2);
  device.run(call);
  EXPECT_EQ(doubles::calls_of("cudnnBackendExecute"), 3);
}

TEST_F(CudaConvolutionTest, BenchmarkModeInWhichEveryEngineIsRefusedLeavesTheDeviceUsable) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  ConvolutionCall call = small_call(tensors, true);
  call.workspace = tensors.bytes(4 << 20);
  doubles::fail_always("cudnnBackendExecute", CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_THAT(error_of([&] { device.run(call); }), HasSubstr("cudnnBackendExecute failed"));
  doubles::stop_failing();
  device.run(call);
  EXPECT_THAT(tensors.read(call.y), testing::ElementsAre(2, 4, 6, 8));
}

TEST_F(CudaConvolutionTest, ReportsThatNoEngineCanBeBuilt) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  const ConvolutionCall call = small_call(tensors);
  doubles::fail_always("cudnnBackendFinalize(plan)", CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_THAT(error_of([&] { device.workspaces().convolution(call.query); }),
              HasSubstr("cuDNN could build none of its engines"));
  doubles::stop_failing();
  EXPECT_EQ(device.workspaces().convolution(call.query).bytes, 1_MiB);
}

TEST_F(CudaConvolutionTest, BenchmarkModeAsksForTheLargestWorkspaceAndKeepsTheFastestEngine) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  ConvolutionCall call = small_call(tensors, true);
  EXPECT_EQ(device.workspaces().convolution(call.query).bytes, 4_MiB);
  call.workspace = tensors.bytes(4 << 20);
  doubles::set_elapsed({3, 1, 2});  // engines of 1 MiB, 4 MiB and 0
  device.run(call);
  EXPECT_THAT(tensors.read(call.y), testing::ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(doubles::calls_of("cudnnBackendExecute"), 3 * 2 + 1);
  EXPECT_EQ(device.workspaces().convolution(call.query).bytes,
            4_MiB);  // now because it was the fastest
  device.run(call);
  EXPECT_EQ(doubles::calls_of("cudnnBackendExecute"), 3 * 2 + 2);
}

TEST_F(CudaConvolutionTest, BenchmarkModeSkipsAnEngineThatDoesNotRun) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  ConvolutionCall call = small_call(tensors, true);
  call.workspace = tensors.bytes(4 << 20);
  doubles::set_elapsed({3, 1});
  doubles::fail("cudnnBackendExecute", 1, CUDNN_STATUS_NOT_SUPPORTED);
  device.run(call);
  EXPECT_THAT(tensors.read(call.y), testing::ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(device.workspaces().convolution(call.query).bytes,
            0_B);  // the third engine was faster than the second
}

// It poisons the context: the next engine would fail for it.
TEST_F(CudaConvolutionTest, BenchmarkModeDoesNotTakeAFailedLaunchForARefusal) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  ConvolutionCall call = small_call(tensors, true);
  call.workspace = tensors.bytes(4 << 20);
  doubles::fail("cudnnBackendExecute", 1, CUDNN_STATUS_EXECUTION_FAILED);
  EXPECT_THAT(error_of([&] { device.run(call); }), HasSubstr("cudnnBackendExecute failed"));
  EXPECT_EQ(doubles::calls_of("cudnnBackendExecute"), 1);
  EXPECT_THAT(error_of([&] { device.run(call); }), HasSubstr("unusable"));
}

TEST_F(CudaConvolutionTest, BenchmarkModeTriesOnlyEnginesThatFitInTheWorkspace) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  ConvolutionCall call = small_call(tensors, true);
  call.workspace = tensors.bytes(1 << 20);
  doubles::set_elapsed({2, 1});
  device.run(call);
  EXPECT_EQ(doubles::calls_of("cudnnBackendExecute"), 2 * 2 + 1);
  EXPECT_EQ(device.workspaces().convolution(call.query).bytes, 0_B);
}

TEST_F(CudaConvolutionTest, BenchmarkModeSkipsEnginesThatExceedDeviceMemory) {
  doubles::reset({.memory = std::size_t{3} << 20, .context = 0});
  CudaDevice device(0);
  DeviceTensors tensors(device);
  EXPECT_EQ(device.workspaces().convolution(small_call(tensors, true).query).bytes, 1_MiB);
}

TEST_F(CudaConvolutionTest, AFailureWhileBenchmarkingMakesTheDeviceUnusableAndLeaksNothing) {
  for (const char* function : {"cudaEventCreateWithFlags", "cudaEventRecord",
                               "cudaEventSynchronize", "cudaEventElapsedTime"}) {
    doubles::reset();
    {
      CudaDevice device(0);
      DeviceTensors tensors(device);
      ConvolutionCall call = small_call(tensors, true);
      call.workspace = tensors.bytes(4 << 20);
      doubles::fail(function, 2, 700);
      EXPECT_THAT(error_of([&] { device.run(call); }), HasSubstr(function));
      EXPECT_THAT(error_of([&] { device.run(call); }), HasSubstr("unusable"));
    }
    EXPECT_THAT(doubles::leaks(), testing::IsEmpty()) << function;
  }
}

TEST_F(CudaConvolutionTest, CachesPlansUpToALimit) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  ConvolutionQuery query = small_call(tensors).query;
  device.workspaces().convolution(query);
  const int planned = doubles::calls_of("cudnnBackendFinalize(plan)");
  device.workspaces().convolution(query);
  EXPECT_EQ(doubles::calls_of("cudnnBackendFinalize(plan)"), planned);
  query.input = {2, 1, 2, 2};
  device.workspaces().convolution(query);
  EXPECT_EQ(doubles::calls_of("cudnnBackendFinalize(plan)"), planned + 1);
}

}  // namespace
}  // namespace memfathom::cuda
