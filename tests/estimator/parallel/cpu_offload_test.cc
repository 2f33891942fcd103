// Frozen weights on the host: sequential CPU offload without DeepSpeed or FSDP.
#include <gtest/gtest.h>

#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

DryRun run_with(const std::string& mode, const std::string& more, const std::string& parallel) {
  return run_job(R"({"model": )" + small_llama() + R"(, "training": {"mode": ")" + mode +
                 R"(", "batch_size": 1, "sequence_length": 16, "precision": "bf16")" + more +
                 R"(}, "allocator": {"backend": "none"}, "parallel": )" + parallel + "}");
}

constexpr const char* kOffload = R"({"offload": {"parameters": "cpu"}})";
constexpr const char* kLora = R"(, "lora": {"rank": 2, "targets": ["q_proj"]})";

TEST(HostedWeightsTest, AForwardPassHoldsOneLayerAtATime) {
  const DryRun device = run_with("inference", "", "{}");
  const DryRun host = run_with("inference", "", kOffload);
  EXPECT_GE(in_phase(device, "forward", {Component::kParameters}), 2 * kSmallLlama);
  EXPECT_LT(in_phase(host, "forward", {Component::kParameters}), 2 * kSmallLlama / 2);
  EXPECT_GE(host.host_peak.count(), 2 * kSmallLlama);
  EXPECT_LT(host.reserved_peak, device.reserved_peak) << "the model never stood on the GPU whole";
}

TEST(HostedWeightsTest, TrainableWeightsStayOnTheGpu) {
  const DryRun device = run_with("train", "", "{}");
  const DryRun host = run_with("train", "", kOffload);
  EXPECT_EQ(host.allocated_peak, device.allocated_peak);
  EXPECT_EQ(host.host_peak.count(), 0);
}

TEST(HostedWeightsTest, AGraphHoldsTheWeightsThatItsBackwardNeedsAndACheckpointDoesNot) {
  const DryRun device = run_with("train", kLora, "{}");
  const DryRun host = run_with("train", kLora, kOffload);
  const DryRun again =
      run_with("train", std::string(kLora) + R"(, "gradient_checkpointing": true)", kOffload);
  EXPECT_LE(host.allocated_peak, device.allocated_peak);
  EXPECT_LT(in_phase(again, "backward", {Component::kParameters}),
            in_phase(host, "backward", {Component::kParameters}));
  EXPECT_EQ(host.trainable_count, device.trainable_count);
  EXPECT_GE(host.host_peak.count(), 2 * kSmallLlama);
}

TEST(HostedWeightsTest, EveryIterationIsLikeTheOneBefore) {
  const DryRun host = run_with("train", kLora, kOffload);
  std::int64_t second = 0, third = 0;
  for (const PhaseRecord& phase : host.phases) {
    if (phase.name != "forward") continue;
    if (phase.iteration == 2) second = phase.allocated_peak;
    if (phase.iteration == 3) third = phase.allocated_peak;
  }
  EXPECT_GT(second, 0);
  EXPECT_EQ(second, third);
}

}  // namespace
}  // namespace memfathom
