#include "estimator/readers/position_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/document_path.h"
#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string warning_of(const char* yaml) {
  const Node document = parse_yaml(yaml, "job.yaml");
  return position_limit_warning(document, read_job(document).model);
}

TEST(PositionLimitTest, ATableOfPositionsEnds) {
  EXPECT_THAT(warning_of("model: {preset: gpt2}\ntraining: {sequence_length: 1024}"), IsEmpty());
  EXPECT_THAT(warning_of("model: {preset: gpt2}\ntraining: {sequence_length: 5000}"),
              HasSubstr("5000 tokens are more than the model's 1024 positions"));
  EXPECT_THAT(warning_of("model: {preset: roberta-base}\ntraining: {sequence_length: 514}"),
              HasSubstr("512 positions"))
      << "two places of its table belong to padding";
}

TEST(PositionLimitTest, NewTokensTakePlacesToo) {
  EXPECT_THAT(warning_of("model: {preset: gpt2}\ntraining: {mode: generate, sequence_length: 1000, "
                         "new_tokens: 100}"),
              HasSubstr("1100 tokens"));
}

TEST(PositionLimitTest, RotatedPositionsOnlyReachFurtherThanTrained) {
  EXPECT_THAT(warning_of("model: {preset: llama-2-7b}\ntraining: {sequence_length: 8192}"),
              HasSubstr("the 4096 positions the model was made for"));
}

std::int64_t assumed_length(const char* preset) {
  Node document = Node::map();
  document.assign("model.preset", Node::string(preset));
  std::vector<std::string> assumptions;
  assume_length(document, assumptions);
  const Node* length = value_at(document, "training.sequence_length");
  return length != nullptr ? length->as_int() : 0;
}

TEST(PositionLimitTest, ALengthIsAssumedForWhateverReadsOrWritesText) {
  EXPECT_EQ(assumed_length("llama-2-7b"), 2048);
  EXPECT_EQ(assumed_length("gpt2"), 1024);
  EXPECT_EQ(assumed_length("qwen2.5-vl-3b"), 2048);
  EXPECT_EQ(assumed_length("whisper-large-v3"), 448) << "its decoder has no more places";
  EXPECT_EQ(assumed_length("resnet50"), 0);
}

TEST(PositionLimitTest, WhatHasNoLimitIsNotWarnedAbout) {
  EXPECT_THAT(warning_of("model: {preset: t5-base}\ntraining: {sequence_length: 5000}"), IsEmpty());
  EXPECT_THAT(warning_of("model: {preset: resnet50}"), IsEmpty());
  EXPECT_THAT(warning_of("model: {layers: []}\ntraining: {sequence_length: 9}"), IsEmpty());
}

}  // namespace
}  // namespace memfathom
