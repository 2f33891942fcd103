// What stays alive because the code of a layer has a name for it.
#include <gtest/gtest.h>

#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

TEST(AttentionNamesTest, KeysAndValuesOfEagerAttentionLiveUntilTheLayerReturns) {
  // PyTorch 2.15's fake tensors of the same layer: 103,811,584 bytes, at the output projection.
  const DryRun run = run_job(
      R"({"model": {"input": {"shape": [128, 256]}, "layers": [{"type": "attention", "hidden": 256,
          "heads": 4, "implementation": "eager"}], "loss": "mean"},
          "training": {"batch_size": 64, "optimizer": "adamw"}, "allocator": {"backend": "none"}})");
  EXPECT_NEAR(static_cast<double>(run.allocated_peak.count()), 103'811'584, 10'000);
}

}  // namespace
}  // namespace memfathom
