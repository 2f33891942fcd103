#include <gtest/gtest.h>

#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

// Bare tensors: sizes without the allocator's slack.
DryRun run_with(const std::string& parallel) {
  return run_job(
      R"({"model": )" + small_llama() +
      R"(, "training": {"batch_size": 1, "sequence_length": 64, "precision": "bf16"}, "allocator": {"backend": "none"}, "parallel": )" +
      parallel + "}");
}

TEST(DataParallelTest, BucketsAreAsLargeAsTheGradients) {
  const DryRun alone = run_with(R"({"num_gpus": 1})");
  const DryRun both = run_with(R"({"num_gpus": 2})");
  EXPECT_EQ(in_phase(alone, "step", {Component::kCommunication}), 0);
  const std::int64_t buckets = in_phase(both, "step", {Component::kCommunication});
  EXPECT_GE(buckets, 2 * kSmallLlama);
  EXPECT_LE(buckets, 2 * kSmallLlama + std::int64_t{8} * 512);
  EXPECT_EQ(in_phase(both, "step", {Component::kGradients}),
            in_phase(alone, "step", {Component::kGradients}));
}

TEST(DataParallelTest, GradientsThatAreViewsOfTheBucketsExistOnce) {
  const DryRun views = run_with(R"({"num_gpus": 2, "gradient_as_bucket_view": true})");
  const std::int64_t gradients =
      in_phase(views, "step", {Component::kGradients, Component::kCommunication});
  EXPECT_GE(gradients, 2 * kSmallLlama);
  EXPECT_LE(gradients, 2 * kSmallLlama + std::int64_t{8} * 512);
}

TEST(DataParallelTest, CommunicatorsLieOutsideTheAllocator) {
  EXPECT_EQ(run_with(R"({"num_gpus": 1})").communication.count(), 0);
  const DryRun two = run_with(R"({"num_gpus": 2})");
  EXPECT_GT(two.communication.count(), 0);
  EXPECT_GE(run_with(R"({"num_gpus": 8})").communication, two.communication);
}

TEST(OffloadTest, AnOptimizerOnTheHostTakesItsStatesThere) {
  const DryRun device = run_with(R"({"num_gpus": 1})");
  const DryRun host = run_with(R"({"num_gpus": 1, "offload": {"optimizer": "cpu"}})");
  EXPECT_EQ(in_phase(host, "step", {Component::kOptimizerState}), 0);
  EXPECT_EQ(device.host_peak.count(), 0);
  EXPECT_GE(host.host_peak.count(), (2 + 2 + 4) * kSmallLlama)
      << "copies, gradients and two states";
  EXPECT_LT(host.allocated_peak, device.allocated_peak);
}

TEST(OffloadTest, ActivationsOnTheHostLeaveTheDevice) {
  const DryRun device = run_with(R"({"num_gpus": 1})");
  const DryRun host = run_with(R"({"num_gpus": 1, "offload": {"activations": "cpu"}})");
  EXPECT_GT(host.host_peak.count(), in_phase(device, "forward", {Component::kActivations}) / 2);
  EXPECT_LT(in_phase(host, "forward", {Component::kActivations}),
            in_phase(device, "forward", {Component::kActivations}) / 2);
}

}  // namespace
}  // namespace memfathom
