// What a command is for, by its name and its flags.
#include "estimator/command_line/purpose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "estimator/command_line/command_line.h"
#include "estimator/readers/merge.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

MergedJob read(const std::string& line) { return merge_files(read_script_text(line, "x.sh", 0)); }

std::vector<std::string> open_keys(const MergedJob& job) {
  std::vector<std::string> keys;
  for (const UnreadKey& key : job.unread) {
    if (!key.concerns.empty()) keys.push_back(key.key);
  }
  return keys;
}

std::string refusal(const std::string& line) {
  try {
    read(line);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PurposeTest, AScriptNamedAfterAdaptersIsNotFullTraining) {
  for (const char* script : {"shira_finetuning.py", "examples/boft_dreambooth.py", "vera_train.py",
                             "train_prompt_tuning.py"}) {
    const MergedJob job =
        read(std::string("python ") + script + " --base_model Qwen/Qwen2.5-7B --batch_size 1");
    EXPECT_THAT(open_keys(job), Contains(script));
    EXPECT_THAT(job.not_modelled, Contains(HasSubstr("adapters")));
  }
}

TEST(PurposeTest, AnalysingDataIsNoTraining) {
  EXPECT_THAT(refusal("python ../../analyze_data.py --num-layers 1 --hidden-size 1 --seq-length 8"),
              HasSubstr("does not train"));
}

TEST(PurposeTest, AFlagThatAsksForAdaptersIsNotFullTraining) {
  EXPECT_THAT(open_keys(read("python train.py --model_name_or_path Qwen/Qwen2.5-7B --lora_r 8 "
                             "--lora_alpha 16 --per_device_train_batch_size 1")),
              Contains("lora_r"));
  EXPECT_THAT(open_keys(read("python train.py --model_name_or_path Qwen/Qwen2.5-7B --method oft "
                             "--per_device_train_batch_size 1")),
              Contains("method"));
}

TEST(PurposeTest, AScriptNamedAfterLoraTrainsTheRankItIsGiven) {
  const MergedJob job = read(
      "deepspeed fastchat/train/train_lora.py --model_name_or_path lmsys/vicuna-7b-v1.5 --lora_r 8 "
      "--lora_alpha 16 --bf16 True --output_dir x --per_device_train_batch_size 2");
  ASSERT_NE(value_at(job.document, "training.lora.rank"), nullptr);
  EXPECT_EQ(value_at(job.document, "training.lora.rank")->as_int(), 8);
}

TEST(PurposeTest, TrlReadsARankOnlyWithUsePeft) {
  const MergedJob job = read(
      "trl sft --model_name_or_path Qwen/Qwen2.5-7B --lora_r 8 --lora_alpha 16 --max_length 512 "
      "--per_device_train_batch_size 1");
  EXPECT_EQ(value_at(job.document, "training.lora.rank"), nullptr);
  EXPECT_THAT(open_keys(job), Not(Contains("lora_r")));
}

TEST(PurposeTest, TestsEvaluationsAndConversionsAreRefused) {
  EXPECT_THAT(refusal("torchrun --nproc_per_node 2 tests/functional_tests/run_attention_cp.py "
                      "--model_type qwen3_moe --batch_size 1"),
              HasSubstr("is a test"));
  EXPECT_THAT(refusal("python evaluate_model.py --model_name_or_path Qwen/Qwen2.5-7B"),
              HasSubstr("does not train"));
  EXPECT_THAT(refusal("python batch_inference.py --model_name_or_path Qwen/Qwen2.5-7B"),
              HasSubstr("\"inference\""));
  EXPECT_THAT(refusal("python run_glue.py --model_name_or_path bert-base-cased --do_eval"),
              HasSubstr("--do_train"));
}

TEST(PurposeTest, ATrainingScriptMayEvaluateAsWell) {
  EXPECT_EQ(refusal("python train_and_evaluate.py --model_name_or_path Qwen/Qwen2.5-7B "
                    "--per_device_train_batch_size 1 --output_dir x"),
            "");
  EXPECT_EQ(refusal("python run_clm.py --model_name_or_path Qwen/Qwen2.5-7B --do_train --do_eval "
                    "--per_device_train_batch_size 1 --output_dir x"),
            "");
}

}  // namespace
}  // namespace memfathom
