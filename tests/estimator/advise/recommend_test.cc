#include "estimator/advise/recommend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/yaml_text.h"
#include "estimator/advise/combine.h"
#include "estimator/job/read_job.h"
#include "tests/estimator/advise/answering.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::Field;

const char* const kJob = R"(
model: {preset: gpt2}
training: {batch_size: 32, sequence_length: 512, precision: fp32, optimizer: adamw}
)";

Node job_on(const std::string& memory) {
  return parse_yaml(std::string(kJob) + "target: {memory: " + memory + "}", "job.yaml");
}

TEST(RecommendTest, AJobThatFitsKeepsItsConfigurationAndHearsHowLargeItMayGrow) {
  const Recommendation recommendation = recommend(job_on("70GiB"), answer_dry, {});
  EXPECT_TRUE(recommendation.fits);
  EXPECT_TRUE(configuration_named(recommendation, "balanced")->changes.empty());
  EXPECT_GT(*recommendation.largest.front().largest, 32);
}

TEST(RecommendTest, AJobThatDoesNotFitGetsTheCheapestChangesAndEachIsNeeded) {
  const Node document = job_on("12GiB");
  const Recommendation recommendation = recommend(document, answer_dry, {});
  EXPECT_FALSE(recommendation.fits);
  const Configuration* balanced = configuration_named(recommendation, "balanced");
  ASSERT_NE(balanced, nullptr);
  EXPECT_LE(balanced->device_peak, *recommendation.available);
  EXPECT_EQ(balanced->effective_batch, 32);
  EXPECT_LE(configuration_named(recommendation, "conservative")->used_fraction, 0.8);
  EXPECT_GE(configuration_named(recommendation, "maximal")->effective_batch, 32);
}

TEST(RecommendTest, TheBatchIsTheLargestThatFits) {
  const Node document = job_on("12GiB");
  const Recommendation recommendation = recommend(document, answer_dry, {});
  const LargestExtent& batch = recommendation.largest.front();
  ASSERT_TRUE(batch.largest);
  EXPECT_LE(batch.device_peak, *recommendation.available);
  const Patch one_more{{"training.batch_size", Node::integer(*batch.largest + 1)}};
  EXPECT_GT(answer_dry(read_job(patched(document, one_more))).totals.device_high,
            *recommendation.available);
}

TEST(RecommendTest, ATenthIsLeftFreeUnlessTheJobSaysItsOwnMargin) {
  EXPECT_EQ(*recommend(job_on("10GiB"), answer_dry, {}).available, Bytes{std::int64_t{9} << 30});
  Node document = job_on("10GiB");
  document.assign("target.margin", Node::string("4GiB"));
  EXPECT_EQ(*recommend(document, answer_dry, {}).available, Bytes{std::int64_t{6} << 30});
}

TEST(RecommendTest, WithoutATargetTheSavingsAreToldAllTheSame) {
  const Recommendation recommendation = recommend(parse_yaml(kJob, "job.yaml"), answer_dry, {});
  EXPECT_FALSE(recommendation.available);
  EXPECT_TRUE(recommendation.configurations.empty());
  EXPECT_THAT(recommendation.suggestions, Contains(Field(&Suggestion::name, "checkpointing")));
}

TEST(RecommendTest, WhatNothingMakesFitHasNoConfiguration) {
  const Recommendation recommendation = recommend(job_on("300MiB"), answer_dry, {});
  EXPECT_EQ(configuration_named(recommendation, "balanced"), nullptr);
}

TEST(RecommendTest, AModuleThatIsTrainedCanBeFrozen) {
  const Node document = parse_yaml(R"(
model:
  modules:
    - {name: encoder, model: {preset: gpt2}, train: full}
    - {name: head, model: {preset: gpt2}, train: full}
training: {batch_size: 1, sequence_length: 64}
)",
                                   "job.yaml");
  EXPECT_THAT(suggest(document, answer_dry), Contains(Field(&Suggestion::name, "freeze-encoder")));
}

}  // namespace
}  // namespace memfathom
