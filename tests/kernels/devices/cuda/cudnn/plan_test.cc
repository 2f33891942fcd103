#include "kernels/devices/cuda/cudnn/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/workspaces/architectures.h"

namespace memfathom::cudnn {
namespace {

DeviceProperties device(const char* gpu) {
  return DeviceProperties::from_json(to_cudnn_json(describe_gpu(gpu)));
}

// 3x3, 64 to 128 channels at 128 squared, batch 8: the example of the shared notes.
ConvolutionQuery example(ConvolutionKind kind, DType dtype, bool channels_last) {
  ConvolutionQuery query;
  query.kind = kind;
  query.input = {8, 64, 128, 128};
  query.weight = {128, 64, 3, 3};
  query.stride = {1, 1};
  query.padding = {1, 1};
  query.dilation = {1, 1};
  query.channels_last = channels_last;
  query.dtype = dtype;
  return query;
}

Bytes first_workspace(const ConvolutionQuery& query, const DeviceProperties& on) {
  return first_engine(Graph(to_cudnn(query)), on).workspace;
}

constexpr std::int64_t kInput = std::int64_t{8} * 64 * 128 * 128 * 4;
constexpr std::int64_t kWeight = std::int64_t{128} * 64 * 9 * 4;

TEST(CudnnPlanTest, A100NeedsNoWorkspaceInFp16ChannelsLastAndCopiesInFp32) {
  const DeviceProperties a100 = device("a100");
  EXPECT_EQ(first_workspace(example(ConvolutionKind::kForward, DType::kFp16, true), a100), Bytes{});
  EXPECT_EQ(first_workspace(example(ConvolutionKind::kForward, DType::kFp32, true), a100),
            Bytes{33849360});
  EXPECT_EQ(first_workspace(example(ConvolutionKind::kForward, DType::kFp32, false), a100),
            Bytes{kInput + kWeight + 16});
}

TEST(CudnnPlanTest, TheGradientsInFp32CopyInputAndOutput) {
  const DeviceProperties a100 = device("a100");
  EXPECT_EQ(first_workspace(example(ConvolutionKind::kDataGradient, DType::kFp32, false), a100),
            Bytes{kInput + 2 * kInput + kWeight + 16});
  EXPECT_EQ(first_workspace(example(ConvolutionKind::kWeightGradient, DType::kFp32, true), a100),
            Bytes{105676944});
}

TEST(CudnnPlanTest, IsDeterministic) {
  const DeviceProperties a100 = device("a100");
  const ConvolutionQuery query = example(ConvolutionKind::kWeightGradient, DType::kBf16, true);
  const Bytes once = first_workspace(query, a100);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(first_workspace(query, a100), once);
  EXPECT_EQ(first_workspace(query, device("a100")), once);
}

TEST(CudnnPlanTest, DependsOnTheArchitecture) {
  const ConvolutionQuery query = example(ConvolutionKind::kForward, DType::kFp32, false);
  EXPECT_NE(first_workspace(query, device("t4")), first_workspace(query, device("a100")));
}

TEST(CudnnPlanTest, PlansForEveryDescribedGpuInEveryDtypeAndLayout) {
  for (const GpuDescription& gpu : known_gpus()) {
    const DeviceProperties on = device(gpu.key);
    for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16}) {
      if (gpu.compute == 75 && dtype == DType::kBf16) continue;  // no bf16 arithmetic before Ampere
      for (const ConvolutionKind kind : {ConvolutionKind::kForward, ConvolutionKind::kDataGradient,
                                         ConvolutionKind::kWeightGradient}) {
        const Bytes bytes = first_workspace(example(kind, dtype, true), on);
        EXPECT_GE(bytes, Bytes{}) << gpu.key;
        EXPECT_LT(bytes, Bytes{std::int64_t{1} << 30}) << gpu.key;
      }
    }
  }
}

TEST(CudnnPlanTest, BenchmarkModeIncludesTheFirstChoice) {
  const DeviceProperties a100 = device("a100");
  const Graph graph(to_cudnn(example(ConvolutionKind::kForward, DType::kFp32, false)));
  const std::vector<Engine> all = all_engines(graph, a100);
  const Engine first = first_engine(graph, a100);
  ASSERT_GT(all.size(), 5U);
  EXPECT_EQ(all.front().workspace, first.workspace);
  EXPECT_GT(largest_workspace(all), first.workspace);
}

TEST(CudnnPlanTest, Fp32WithoutTf32UsesNoTensorCores) {
  const DeviceProperties a100 = device("a100");
  const Graph graph(to_cudnn(example(ConvolutionKind::kForward, DType::kFp32, false)));
  EXPECT_LT(all_engines(graph, a100, {.allow_tf32 = false}).size(),
            all_engines(graph, a100).size());
  EXPECT_NE(first_engine(graph, a100, {.allow_tf32 = false}).workspace,
            first_engine(graph, a100).workspace);
}

TEST(CudnnPlanTest, DeterminismLeavesFewerEngines) {
  const DeviceProperties a100 = device("a100");
  const Graph graph(to_cudnn(example(ConvolutionKind::kWeightGradient, DType::kFp32, false)));
  EXPECT_LT(all_engines(graph, a100, {.deterministic = true}).size(),
            all_engines(graph, a100).size());
}

TEST(CudnnPlanTest, ExecutionPlanNeedsTheWorkspaceOfItsEngine) {
  const DeviceProperties a100 = device("a100");
  const Graph graph(to_cudnn(example(ConvolutionKind::kForward, DType::kFp32, false)));
  const Engine engine = first_engine(graph, a100);
  EXPECT_EQ(ExecutionPlan(engine, a100).workspace(), engine.workspace);
}

TEST(CudnnPlanTest, PlansAllRanksGroupsDilationsAndTransposes) {
  const DeviceProperties a100 = device("a100");
  ConvolutionQuery query;
  query.input = {4, 32, 4096};
  query.weight = {64, 32, 7};
  query.stride = {2};
  query.padding = {3};
  query.dilation = {1};
  EXPECT_NO_THROW(first_workspace(query, a100));
  query.input = {2, 16, 24, 24, 24};
  query.weight = {32, 16, 3, 3, 3};
  query.stride = query.padding = query.dilation = {1, 1, 1};
  EXPECT_NO_THROW(first_workspace(query, a100));
  query.input = {2, 64, 32, 32};
  query.weight = {64, 16, 3, 3};
  query.groups = 4;
  query.stride = {1, 1};
  query.padding = query.dilation = {2, 2};
  EXPECT_NO_THROW(first_workspace(query, a100));
  query.groups = 1;
  query.weight = {64, 16, 2, 2};
  query.stride = {2, 2};
  query.padding = {0, 0};
  query.dilation = {1, 1};
  query.transposed = true;
  EXPECT_NO_THROW(first_workspace(query, a100));
}

TEST(CudnnPlanTest, RefusesBf16OnADeviceWithoutBf16) {
  try {
    first_workspace(example(ConvolutionKind::kForward, DType::kBf16, true), device("t4"));
    FAIL() << "planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("cuDNN has no engine for this operation on this device"));
  }
}

TEST(CudnnPlanTest, RefusesAnInvalidDeviceDescription) {
  EXPECT_THROW(DeviceProperties::from_json("{}"), Error);
  EXPECT_THROW(DeviceProperties::from_json("not json"), Error);
}

}  // namespace
}  // namespace memfathom::cudnn
