#include <gtest/gtest.h>

#include "estimator/models/stack/layer_types.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

const char* const kCopy = R"({"type": "concat", "branches": [[]]})";
const char* const kGrow =
    R"({"type": "concat", "branches": [[], [{"type": "conv2d", "out": 8, "kernel": 3, "padding": 1}, {"type": "relu"}]]})";
const char* const kPlain = R"({"type": "relu"})";

std::size_t length_of(std::initializer_list<const char*> layers) {
  std::vector<Node> nodes;
  for (const char* layer : layers) nodes.push_back(parse_json(layer, "layer.json"));
  std::vector<const Node*> specs;
  for (const Node& node : nodes) specs.push_back(&node);
  return dense_block_length(specs);
}

TEST(DenseBlockTest, ConcatsThatGrowTheirInputAreOneBlock) {
  EXPECT_EQ(length_of({kGrow, kGrow, kPlain}), 2U);
  EXPECT_EQ(length_of({kCopy, kGrow, kGrow, kCopy, kGrow}), 3U);
  EXPECT_EQ(length_of({kCopy, kGrow}), 2U);
}

TEST(DenseBlockTest, ASingleOneIsAConcatLikeAnyOther) {
  EXPECT_EQ(length_of({kGrow, kPlain}), 0U);
  EXPECT_EQ(length_of({kCopy, kPlain}), 0U);
  EXPECT_EQ(length_of({kPlain, kGrow, kGrow}), 0U);
  EXPECT_EQ(length_of({}), 0U);
}

DryRun run_block(const std::string& layers) {
  return run_job(
      R"({"model": {"input": {"shape": [16, 32, 32]}, "layers": [)" + layers +
      R"(, {"type": "adaptive_avg_pool2d", "size": 1}, {"type": "flatten"}, {"type": "linear", "out": 10}],
      "loss": "cross_entropy"}, "training": {"batch_size": 64, "optimizer": "sgd"}})");
}

TEST(DenseBlockTest, EveryUnitReadsAllFeaturesBeforeIt) {
  const std::string grow = kGrow;
  const DryRun run = run_block(grow + "," + grow + "," + grow);
  const std::int64_t convolutions = 9 * 8 * (16 + 24 + 32) + 3 * 8;
  EXPECT_EQ(run.parameter_count, convolutions + std::int64_t{40} * 10 + 10);
}

// As PyTorch has it: a gradient is summed for each feature, not for each joined tensor.
TEST(DenseBlockTest, BackwardHoldsNoSecondGradientOfTheJoinedFeatures) {
  const std::string grow = kGrow;
  const DryRun block = run_block(grow + "," + grow + "," + grow + "," + grow);
  // Between the concats a layer that does nothing to memory: each is read on its own.
  const std::string same = R"({"type": "crop", "size": [0, 0, 0, 0]})";
  const DryRun apart =
      run_block(grow + "," + same + "," + grow + "," + same + "," + grow + "," + same + "," + grow);
  EXPECT_LE(phase_peak(block, "backward"), phase_peak(apart, "backward"));
}

}  // namespace
}  // namespace memfathom
