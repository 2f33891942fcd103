#include "estimator/readers/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/yaml_text.h"
#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string data(const char* name) { return std::string(MEMFATHOM_TEST_DATA) + "/readers/" + name; }

Reading reading_of(const char* yaml, const char* file) {
  const Node tree = parse_yaml(yaml, file);
  return read_tree(tree, detect_format(tree));
}

TEST(MergeTest, ModelArgumentsAndDeepSpeedAreOneJobThatRuns) {
  const MergedJob job =
      read_job_files({data("tiny-llama"), data("training_args.json"), data("deepspeed.json")});
  EXPECT_THAT(job.warnings, IsEmpty());
  const Node& document = job.document;
  EXPECT_EQ(document.at("training").at("precision").as_string(),
            "bf16");  // the engine's, where the Trainer says bf16
  EXPECT_EQ(document.at("training").at("batch_size").as_int(), 2);
  EXPECT_EQ(document.at("parallel").at("zero").at("reduce_bucket_size").as_int(), 256 * 256);
  EXPECT_GT(run_dry(read_job(document), {}).parameter_count, 1000000);
}

TEST(MergeTest, AContradictionIsNamedAndTheLaterFileTaken) {
  const MergedJob job =
      merge_files({reading_of("per_device_train_batch_size: 4\nmax_grad_norm: 0", "args.yaml"),
                   reading_of("train_micro_batch_size_per_gpu: 8", "ds.yaml")});
  EXPECT_THAT(
      job.warnings,
      ElementsAre("training.batch_size is 4 in args.yaml and 8 in ds.yaml; the latter was taken"));
  EXPECT_EQ(job.document.at("training").at("batch_size").as_int(), 8);
}

TEST(MergeTest, TheTypeTheWeightsWereStoredInYieldsToTheTraining) {
  const MergedJob job =
      read_job_files({data("training_args.json"), data("tiny-llama/config.json")});
  EXPECT_EQ(job.document.at("training").at("precision").as_string(), "amp-bf16");
  EXPECT_THAT(job.warnings, IsEmpty());
  EXPECT_EQ(read_job_files({data("tiny-llama/config.json")})
                .document.at("training")
                .at("precision")
                .as_string(),
            "bfloat16");
}

TEST(MergeTest, AutoWithoutAHiddenSizeIsSaid) {
  const MergedJob job = merge_files(
      {reading_of("zero_optimization: {stage: 2, reduce_bucket_size: auto}", "ds.yaml")});
  EXPECT_THAT(job.assumptions, Contains(HasSubstr("no hidden size")));
}

TEST(MergeTest, AJobFileIsTakenAsItIs) {
  const Reading job =
      reading_of("model: {preset: gpt2}\ntraining: {batch_size: 4, precision: bf16}", "job.yaml");
  EXPECT_TRUE(merge_files({job}).document.same_value(job.content));
}

TEST(MergeTest, ChangesGoBackIntoTheFileThatSaidTheKeyInItsOwnWords) {
  const MergedJob job = read_job_files(
      {data("tiny-llama/config.json"), data("training_args.json"), data("deepspeed.json")});
  Patch left_over;
  const std::vector<ChangedFile> files =
      write_back(job,
                 {{"training.batch_size", Node::integer(1)},
                  {"training.optimizer", Node::string("adamw-8bit")},
                  {"training.gradient_checkpointing", Node::string("none")},
                  {"parallel.zero_stage", Node::integer(3)},
                  {"parallel.offload.parameters", Node::string("cpu")},
                  {"allocator.options", Node::string("expandable_segments:True")}},
                 left_over);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].content.at("per_device_train_batch_size").as_int(), 1);
  EXPECT_EQ(files[0].content.at("optim").as_string(), "adamw_bnb_8bit");
  EXPECT_FALSE(files[0].content.at("gradient_checkpointing").as_bool());
  EXPECT_EQ(files[1].content.at("zero_optimization").at("stage").as_int(), 3);
  EXPECT_EQ(files[1].content.at("zero_optimization").at("offload_param").at("device").as_string(),
            "cpu");
  ASSERT_EQ(left_over.size(), 1U);
  EXPECT_EQ(left_over.front().key, "allocator.options");
}

TEST(MergeTest, WhatWasWrittenBackIsReadAsTheChangedJob) {
  const MergedJob job = read_job_files({data("axolotl.yaml")});
  const Patch patch{{"training.batch_size", Node::integer(1)},
                    {"training.sequence_length", Node::integer(512)},
                    {"training.lora.rank", Node::integer(8)}};
  Patch left_over;
  const std::vector<ChangedFile> files = write_back(job, patch, left_over);
  ASSERT_EQ(files.size(), 1U);
  const Node again = parse_yaml(to_yaml(files[0].content), "axolotl.yaml");
  EXPECT_TRUE(merge_files({read_tree(again, detect_format(again))})
                  .document.same_value(patched(job.document, patch)));
}

}  // namespace
}  // namespace memfathom
