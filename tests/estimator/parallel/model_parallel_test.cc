#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

DryRun run_with(const std::string& parallel,
                const std::string& training = R"("precision": "bf16")") {
  return run_job(R"({"model": )" + small_llama() +
                 R"(, "training": {"batch_size": 2, "sequence_length": 256, )" + training +
                 R"(}, "allocator": {"backend": "none"}, "parallel": )" + parallel + "}");
}

TEST(TensorParallelTest, DividesMatricesAndVocabularyButNotNorms) {
  const DryRun whole = run_with(R"({"num_gpus": 1})");
  const DryRun half = run_with(R"({"num_gpus": 2, "tensor": 2})");
  constexpr std::int64_t kNorms = 1152;  // 9 of 128
  EXPECT_NEAR(static_cast<double>(in_phase(half, "step", {Component::kParameters})),
              (kSmallLlama - kNorms) + 2.0 * kNorms, 64 * 512);
  EXPECT_EQ(half.parameter_count, whole.parameter_count);
  EXPECT_LT(in_phase(half, "forward", {Component::kLogitsLoss}),
            in_phase(whole, "forward", {Component::kLogitsLoss}) * 6 / 10);
}

// A stage without the head was asked for the pairs' logits, and the program crashed.
TEST(PipelineParallelTest, RefusesPreferencePairs) {
  EXPECT_THROW(run_with(R"({"num_gpus": 2, "pipeline": 2})", R"("preference": {"method": "dpo"})"),
               Error);
}

TEST(TensorParallelTest, RefusesWhatItCannotDivide) {
  EXPECT_THROW(run_with(R"({"num_gpus": 3, "tensor": 3})"), Error);
  EXPECT_THROW(
      run_job(
          R"({"model": {"layers": [{"type": "linear", "in": 4, "out": 4}], "input": {"shape": [4]}}, "parallel": {"tensor": 2}})"),
      Error);
}

TEST(SequenceParallelTest, LeavesEachGpuItsPartOfEveryActivation) {
  const auto saved = [](const std::string& parallel) {
    return static_cast<double>(in_phase(run_with(parallel), "forward", {Component::kActivations}));
  };
  const double whole = saved(R"({"num_gpus": 1})");
  const double divided = saved(R"({"num_gpus": 2, "tensor": 2, "sequence_parallel": true})");
  EXPECT_NEAR(divided, whole / 2, 0.05 * whole);
  EXPECT_LT(divided, saved(R"({"num_gpus": 2, "tensor": 2})"));
}

TEST(SequenceParallelTest, SaysWhatItDivides) {
  const DryRun run = run_with(R"({"num_gpus": 4, "tensor": 4, "sequence_parallel": true})");
  EXPECT_THAT(run.assumptions, testing::Contains(testing::HasSubstr("sequence parallel")));
  EXPECT_TRUE(run.not_modelled.empty());
}

TEST(SequenceParallelTest, NeedsTensorParallelismAndAWholeShare) {
  EXPECT_THROW(run_with(R"({"num_gpus": 2, "sequence_parallel": true})"), Error);
  EXPECT_THROW(run_job(R"({"model": )" + small_llama() +
                       R"(, "training": {"sequence_length": 255},
                  "parallel": {"num_gpus": 2, "tensor": 2, "sequence_parallel": true}})"),
               Error);
}

TEST(PipelineTest, TheFirstStageHoldsAsManyMicroBatchesAsThereAreStages) {
  const auto saved = [](const DryRun& run) {
    return in_phase(run, "forward", {Component::kActivations});
  };
  const DryRun whole = run_with(R"({"num_gpus": 1})");
  const DryRun first =
      run_with(R"({"num_gpus": 2, "pipeline": 2})", R"("precision": "bf16", "fused_loss": true)");
  EXPECT_NEAR(static_cast<double>(saved(first)), static_cast<double>(saved(whole)),
              0.1 * static_cast<double>(saved(whole)));
}

TEST(PipelineTest, SaysWhichStageIsShownAndCountsTheWholeModel) {
  const DryRun run = run_with(R"({"num_gpus": 2, "pipeline": 2})");
  EXPECT_EQ(run.parameter_count, kSmallLlama);
  EXPECT_THAT(run.rank, testing::AnyOf("pipeline stage 1 of 2", "pipeline stage 2 of 2"));
  EXPECT_EQ(run_with(R"({"num_gpus": 2})").rank, "");
  EXPECT_THAT(run.assumptions, testing::Contains(testing::HasSubstr("stage is the heaviest")));
  EXPECT_LT(in_phase(run, "step", {Component::kParameters}), 2 * kSmallLlama * 7 / 10);
}

TEST(SelectiveCheckpointingTest, LiesBetweenAllAndNothing) {
  const auto saved = [](const std::string& kind) {
    const DryRun run = run_with(
        R"({"num_gpus": 1})", R"("precision": "bf16", "gradient_checkpointing": ")" + kind + "\"");
    return in_phase(run, "forward", {Component::kActivations});
  };
  EXPECT_LT(saved("full"), saved("selective"));
  EXPECT_LT(saved("selective"), saved("none"));
}

}  // namespace
}  // namespace memfathom
