#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

constexpr std::int64_t kRounding = std::int64_t{64} * 512;
constexpr std::int64_t kBucket = 100000;

DryRun run_with(int stage, int gpus, const std::string& more = "") {
  return run_job(
      R"({"model": )" + small_llama() +
      R"(, "training": {"batch_size": 1, "sequence_length": 64, "precision": "amp-bf16"}, "parallel": )" +
      fmt::format(
          R"({{"num_gpus": {}, "zero_stage": {}, "zero": {{"reduce_bucket_size": {}, "prefetch_bucket_size": 1000, "max_live_parameters": 1000{}}}}}, "allocator": {{"backend": "none"}}}})",
          gpus, stage, kBucket, more));
}

double as_double(std::int64_t bytes) { return static_cast<double>(bytes); }

TEST(ZeroTest, StageOneDividesTheOptimizerOnly) {
  const DryRun run = run_with(1, 4);
  EXPECT_NEAR(as_double(in_phase(run, "step", {Component::kParameters})), 2.0 * kSmallLlama,
              kRounding);
  EXPECT_NEAR(as_double(in_phase(run, "step", {Component::kOptimizerState})),
              12.0 * kSmallLlama / 4, kRounding);
}

TEST(ZeroTest, StageTwoKeepsItsOwnPartOfTheGradients) {
  const auto gradients = [](int stage) {
    return as_double(in_phase(run_with(stage, 4), "backward", {Component::kGradients}));
  };
  EXPECT_NEAR(gradients(1), 2.0 * kSmallLlama, kRounding);
  // The parameter in which the partition begins is kept whole.
  EXPECT_LE(gradients(2), 2.0 * kSmallLlama / 4 + 2.0 * 1000 * 128 + kRounding);
}

TEST(ZeroTest, TheBucketIsTakenForEachBackwardAndTwiceWithOverlap) {
  const DryRun plain = run_with(2, 2);
  const DryRun overlap = run_with(2, 2, R"(, "overlap_comm": true)");
  EXPECT_EQ(in_phase(plain, "forward", {Component::kCommunication}), 0);
  EXPECT_NEAR(as_double(in_phase(plain, "backward", {Component::kCommunication})), 2.0 * kBucket,
              512);
  EXPECT_NEAR(as_double(in_phase(overlap, "backward", {Component::kCommunication})), 4.0 * kBucket,
              1024);
}

TEST(ZeroTest, StageThreeDividesLargeParametersTooAndKeepsSmallOnesWholeBesideTheirPartitions) {
  const DryRun run = run_with(3, 4);
  EXPECT_NEAR(as_double(in_phase(run, "step", {Component::kOptimizerState})),
              12.0 * kSmallLlama / 4, kRounding);
  // Only embedding and head have the 100,000 elements from which DeepSpeed lets parameters go.
  constexpr std::int64_t kLarge = std::int64_t{2} * 1000 * 128;
  EXPECT_NEAR(as_double(in_phase(run, "step", {Component::kParameters})),
              2.0 * (kSmallLlama - kLarge) + 2.0 * kSmallLlama / 4, kRounding);
}

TEST(ZeroTest, AnOffloadedOptimizerLeavesParametersAndBuckets) {
  const DryRun run = run_job(
      R"({"model": )" + small_llama() +
      R"(, "training": {"sequence_length": 64, "precision": "amp-bf16"}, "parallel": {"num_gpus": 2, "zero_stage": 2,
                               "zero": {"reduce_bucket_size": 100000}, "offload": {"optimizer": "cpu"}}})");
  EXPECT_EQ(in_phase(run, "step", {Component::kOptimizerState}), 0);
  EXPECT_GE(run.host_peak.count(), 16 * kSmallLlama / 2);
}

}  // namespace
}  // namespace memfathom
