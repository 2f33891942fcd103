// The arithmetic behind each line, with the job's own numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "estimator/answer/estimate.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

using ::testing::HasSubstr;

Estimate explained(const std::string& text, const Calibration* calibration = nullptr) {
  const Job job = read_job(parse_json(text, "job.json"));
  EstimateContext context;
  context.explains = true;
  context.calibration = calibration;
  return make_estimate(job, run_dry(job, {}), context);
}

std::string text_of(const Estimate& estimate, const std::string& name) {
  for (const Explanation& line : estimate.explanations) {
    if (line.name == name) return line.text;
  }
  return "nothing about " + name;
}

std::string small_job(const std::string& training) {
  return R"({"model": )" + small_llama() + R"(, "training": )" + training + "}";
}

TEST(ExplainTest, EveryComponentIsExplained) {
  const Estimate estimate =
      explained(small_job(R"({"batch_size": 2, "sequence_length": 64, "precision": "bf16"})"));
  std::size_t i = 0;
  for (const ComponentLine& line : estimate.components) {
    ASSERT_LT(i, estimate.explanations.size());
    EXPECT_THAT(estimate.explanations[i].text, HasSubstr(to_string(line.bytes)));
    EXPECT_GT(estimate.explanations[i].text.size(), 20U) << estimate.explanations[i].name;
    ++i;
  }
}

TEST(ExplainTest, ParametersAreTheirNumberTimesTheirBytes) {
  const Estimate estimate =
      explained(small_job(R"({"batch_size": 2, "sequence_length": 64, "precision": "bf16"})"));
  EXPECT_THAT(text_of(estimate, "parameters"), HasSubstr("1,059,968 parameters x 2 B"));
  EXPECT_THAT(text_of(estimate, "optimizer_state"), HasSubstr("4.0"));
}

TEST(ExplainTest, ActivationsAreTokensTimesBytes) {
  const Estimate estimate =
      explained(small_job(R"({"batch_size": 16, "sequence_length": 128, "precision": "bf16"})"));
  EXPECT_THAT(text_of(estimate, "activations"), HasSubstr("2,048 tokens (16 samples of 128)"));
  EXPECT_THAT(text_of(estimate, "activations"), HasSubstr("4 layers"));
  EXPECT_THAT(text_of(estimate, "logits_loss"),
              HasSubstr("2,048 tokens x 1,000 vocabulary entries"));
}

TEST(ExplainTest, ACoefficientIsShownWithItsErrorAndItsSource) {
  Calibration calibration;
  calibration.name = "a100-40gb/pytorch";
  calibration.created = "2026-01-02T03:04:05Z";
  calibration.source = Source::kFitted;
  Coefficient context;
  context.name = "context";
  context.value = 500.0 * (1 << 20);
  context.standard_error = 10.0 * (1 << 20);
  context.samples = 40;
  calibration.coefficients.push_back(context);
  const Estimate estimate = explained(
      small_job(R"({"batch_size": 1, "sequence_length": 64, "precision": "bf16"})"), &calibration);
  const std::string text = text_of(estimate, "context");
  EXPECT_THAT(text, HasSubstr("500.00 MiB +- 10.00 MiB"));
  EXPECT_THAT(text, HasSubstr("40 samples"));
  EXPECT_THAT(text, HasSubstr("a100-40gb/pytorch of 2026-01-02"));
}

TEST(ExplainTest, SaysWhyReservedMemoryNeedNotGrowEvenly) {
  const Estimate estimate =
      explained(small_job(R"({"batch_size": 2, "sequence_length": 64, "precision": "bf16"})"));
  EXPECT_THAT(text_of(estimate, "reserved"), HasSubstr("best fit"));
  const Estimate images = explained(
      R"({"model": {"preset": "resnet18"}, "training": {"batch_size": 2, "image_size": 64}})");
  EXPECT_THAT(text_of(images, "device"), HasSubstr("cuDNN may pick a plan"));
}

TEST(ExplainTest, TellsPyTorchsTensorsForCommunicationFromNccls) {
  const Estimate estimate = explained(
      R"({"model": )" + small_llama() +
      R"(, "training": {"batch_size": 2, "sequence_length": 64}, "parallel": {"num_gpus": 2}})");
  std::string lines;
  for (const Explanation& line : estimate.explanations) {
    if (line.name == "communication") lines += line.text + "\n";
  }
  EXPECT_THAT(lines, HasSubstr("in PyTorch's allocator (exact)"));
  EXPECT_THAT(lines, HasSubstr("NCCL's buffers outside the allocator"));
}

TEST(ExplainTest, NothingIsExplainedUnasked) {
  const Job job =
      read_job(parse_json(small_job(R"({"batch_size": 1, "sequence_length": 8})"), "job.json"));
  EXPECT_TRUE(make_estimate(job, run_dry(job, {}), {}).explanations.empty());
}

}  // namespace
}  // namespace memfathom
