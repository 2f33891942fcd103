// Compares our A100 description with the shared one.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "kernels/devices/cuda/cudnn/plan.h"
#include "kernels/workspaces/architectures.h"
#include "tests/support/paths.h"

namespace memfathom::cudnn {
namespace {

TEST(CudnnPlanTest, A100DescriptionPlansLikeTheSharedOne) {
  std::ifstream file(shared_data() / "cudnn/sm80_a100.json");
  const std::string json{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const DeviceProperties shared = DeviceProperties::from_json(json);
  const DeviceProperties ours = DeviceProperties::from_json(to_cudnn_json(describe_gpu("a100")));
  ConvolutionQuery query;
  query.input = {8, 64, 128, 128};
  query.weight = {128, 64, 3, 3};
  query.stride = {1, 1};
  query.padding = {1, 1};
  query.dilation = {1, 1};
  query.dtype = DType::kFp16;
  for (const ConvolutionKind kind : {ConvolutionKind::kForward, ConvolutionKind::kDataGradient,
                                     ConvolutionKind::kWeightGradient}) {
    query.kind = kind;
    const Graph graph(to_cudnn(query));
    EXPECT_EQ(first_engine(graph, shared).workspace, first_engine(graph, ours).workspace);
  }
}

}  // namespace
}  // namespace memfathom::cudnn
