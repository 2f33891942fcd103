// The loop around a model: what a script's batches and a summary before training leave behind.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

// 64 MiB of input, a sum over it, next to nothing else.
DryRun run_wide_input(const std::string& training) {
  return run_job(R"({"model": {"input": {"shape": [16, 1024, 1024], "dtype": "fp32"}, "layers": [)"
                 R"({"type": "adaptive_avg_pool2d", "size": 1}, {"type": "flatten"},)"
                 R"( {"type": "linear", "in": 16, "out": 4}], "loss": "cross_entropy"},)"
                 R"( "training": {"mode": "train", "batch_size": 1, "optimizer": "sgd")" +
                 training + "}}");
}

TEST(LoopTest, ANewBatchTakesThePlaceOfTheOldOne) {
  const DryRun run = run_wide_input("");
  EXPECT_GE(run.reserved_peak, Bytes{64 << 20});
  EXPECT_LT(run.reserved_peak, Bytes{128 << 20});
}

TEST(LoopTest, ASummaryBeforeTrainingLeavesItsTwoSamplesInTheCache) {
  const DryRun run = run_wide_input(R"(, "warmup_forward": true)");
  EXPECT_GE(run.reserved_peak, Bytes{128 << 20});
  EXPECT_LT(run.reserved_peak, Bytes{192 << 20});
}

TEST(LoopTest, ASummaryHoldsTheGraphOfItsPass) {
  // Sixteen maps of 8 MiB for two samples: without a graph two of them would live at a time.
  std::string layers = R"({"type": "conv2d", "in": 1, "out": 16, "kernel": 1})";
  for (int i = 0; i < 15; ++i) {
    layers += R"(, {"type": "conv2d", "in": 16, "out": 16, "kernel": 1})";
  }
  const DryRun run = run_job(
      R"({"model": {"input": {"shape": [1, 256, 256], "dtype": "fp32"}, "layers": [)" + layers +
      R"(, {"type": "adaptive_avg_pool2d", "size": 1}, {"type": "flatten"},)"
      R"( {"type": "linear", "in": 16, "out": 4}], "loss": "cross_entropy"},)"
      R"( "training": {"mode": "train", "batch_size": 2, "optimizer": "sgd", "warmup_forward": true}})");
  std::int64_t load = 0;
  for (const PhaseRecord& phase : run.phases) {
    if (phase.name == "load") load = std::max(load, phase.allocated_peak);
  }
  EXPECT_GE(load, 16 * (8 << 20));
}

}  // namespace
}  // namespace memfathom
