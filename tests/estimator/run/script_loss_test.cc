// Losses that a script makes from the model's output: the output, and a causal model's cache, have
// a name.
#include <gtest/gtest.h>

#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

DryRun train(const std::string& more) {
  return run_job(R"({"model": )" + small_llama() +
                 R"(, "training": {"mode": "train", "batch_size": 8, "sequence_length": 256,)"
                 R"( "precision": "bf16", "optimizer": "none")" +
                 more + "}}");
}

constexpr std::int64_t kTokens = std::int64_t{8} * 256;

TEST(ScriptLossTest, TheCacheIsPartOfWhatTheScriptHolds) {
  const DryRun run = train(R"(, "loss": "sum")");
  EXPECT_EQ(in_phase(run, "backward", {Component::kKvCache}), 4 * kTokens * 2 * 128 * 2);
}

TEST(ScriptLossTest, TheModelsOwnLossLeavesNoCache) {
  EXPECT_EQ(in_phase(train(""), "backward", {Component::kKvCache}), 0);
}

TEST(ScriptLossTest, ASumsGradientIsCopiedForTheHeadsProducts) {
  // The gradient of a sum is one number expanded; cuBLAS cannot read it, and both of the head's
  // products copy it first: logits, their gradient's copy.
  const DryRun run = train(R"(, "loss": "sum", "use_cache": false)");
  const std::int64_t logits = kTokens * 1000 * 2;
  EXPECT_GE(in_phase(run, "backward", {Component::kLogitsLoss, Component::kTemporaries}),
            2 * logits);
}

TEST(ScriptLossTest, AdaptersOfNoGivenTypeTrainUnderAutocast) {
  const std::string lora = R"(, "lora": {"rank": 8, "targets": ["q_proj", "v_proj"])";
  const DryRun silent = train(lora + "}");
  const DryRun said = train(lora + R"(}, "autocast": "bf16")");
  const DryRun pure = train(lora + R"(, "precision": "fp32"})");
  EXPECT_EQ(silent.allocated_peak, said.allocated_peak);
  EXPECT_NE(silent.allocated_peak, pure.allocated_peak);
}

}  // namespace
}  // namespace memfathom
