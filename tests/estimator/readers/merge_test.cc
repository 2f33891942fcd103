#include "estimator/readers/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "estimator/command_line/command_line.h"
#include "estimator/job/read_job.h"
#include "estimator/readers/gpu_count.h"
#include "estimator/readers/resolve_auto.h"
#include "estimator/run/dry_run.h"
#include "tests/estimator/readers/parsed_value.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// As estimate --from does it (cli/job/job_source.cc).
MergedJob read_job_files(const std::vector<std::string>& paths) {
  MergedJob job = merge_files(read_sources(paths));
  keep_stored_type(job.files, job.document, job);
  resolve_auto_values(job.files, job.document, job);
  return job;
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
      merge_files({parse_config("per_device_train_batch_size: 4\nmax_grad_norm: 0", "args.yaml"),
                   parse_config("train_micro_batch_size_per_gpu: 8", "ds.yaml")});
  EXPECT_THAT(
      job.warnings,
      ElementsAre("training.batch_size is 4 in args.yaml and 8 in ds.yaml; the latter was taken"));
  EXPECT_EQ(job.document.at("training").at("batch_size").as_int(), 8);
}

TEST(MergeTest, TheTypeTheWeightsWereStoredInIsWhatTheTrainerComputesOver) {
  const MergedJob job =
      read_job_files({data("training_args.json"), data("tiny-llama/config.json")});
  EXPECT_EQ(job.document.at("training").at("precision").as_string(), "bfloat16");
  EXPECT_EQ(job.document.at("training").at("autocast").as_string(), "bf16");
  EXPECT_THAT(job.assumptions, Contains(HasSubstr("--precision amp-bf16")));
  EXPECT_THAT(job.warnings, IsEmpty());
  EXPECT_EQ(read_job_files({data("tiny-llama/config.json")})
                .document.at("training")
                .at("precision")
                .as_string(),
            "bfloat16");
}

TEST(MergeTest, BeforeTransformersFiveTheTrainersWeightsAreFp32) {
  const std::string config = "model: {config: " + data("tiny-llama/config.json") + "}\n";
  const auto precision = [&](const std::string& version) {
    MergedJob job = merge_files(
        {parse_config((config + "target: {stack: {transformers: " + version + "}}\n").c_str(),
                      "job.yaml"),
         parse_config("per_device_train_batch_size: 4\nbf16: true", "args.yaml")});
    keep_stored_type(job.files, job.document, job);
    return job.document.at("training").at("precision").as_string();
  };
  EXPECT_EQ(precision("4.57"), "amp-bf16");
  EXPECT_EQ(precision("5.0"), "bfloat16");
}

TEST(MergeTest, AutoWithoutAHiddenSizeIsSaid) {
  MergedJob job = merge_files(
      {parse_config("zero_optimization: {stage: 2, reduce_bucket_size: auto}", "ds.yaml")});
  resolve_auto_values(job.files, job.document, job);
  EXPECT_THAT(job.assumptions, Contains(HasSubstr("no hidden size")));
}

TEST(MergeTest, AJobFileIsTakenAsItIs) {
  const ParsedFile job =
      parse_config("model: {preset: gpt2}\ntraining: {batch_size: 4, precision: bf16}", "job.yaml");
  EXPECT_TRUE(merge_files({job}).document.same_value(job.content));
}

TEST(MergeTest, FsdpTrainsInFp32WhereThePrecisionIsMixed) {
  const auto precision_with = [](const char* more) {
    const MergedJob job = merge_files({parse_config(
        (std::string("{base_model: meta-llama/Llama-3.2-1B, bf16: true, fsdp_version: 2, "
                     "fsdp_config: {reshard_after_forward: true}") +
         more + "}")
            .c_str())});
    return value_at(job.document, "training.precision")->as_string();
  };
  EXPECT_EQ(precision_with(""), "amp-bf16");
  EXPECT_EQ(precision_with(", adapter: lora, lora_r: 8"), "bf16");
}

TEST(MergeTest, TwoModelsAreRefusedByName) {
  const auto merged = [](const char* other) {
    return merge_files(
        {parse_config("{base_model: meta-llama/Llama-3.1-8B, micro_batch_size: 1}", "a.yml"),
         parse_config(other, "b.json")});
  };
  const MergedJob same =
      merged("{peft_type: LORA, r: 8, base_model_name_or_path: meta-llama/Llama-3.1-8B-Instruct}");
  EXPECT_NO_THROW(refuse_two_models(same.files));
  const MergedJob other =
      merged("{peft_type: LORA, r: 8, base_model_name_or_path: Qwen/Qwen2.5-7B}");
  try {
    refuse_two_models(other.files);
    FAIL() << "two models were taken for one";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("a.yml names the model meta-llama/Llama-3.1-8B, and b.json "
                                        "names Qwen/Qwen2.5-7B"));
  }
}

TEST(MergeTest, FreezingAModuleThatTheJobLacksIsRefused) {
  const auto merge_with = [](const char* name) {
    const Node job = parse_yaml(
        (std::string("{model: {modules: [{name: ") + name + ", model: {preset: gpt2}}]}}").c_str(),
        "job.yaml");
    return merge_files({read_tree(job, FileFormat::kJob),
                        parse_config("{model: {freeze_vggt: true}, batch_size: 1}")});
  };
  EXPECT_EQ(merge_with("vggt").unread.size(), 0u);
  EXPECT_THROW(merge_with("backbone"), Error);
}

MergedJob read_documents(const std::vector<std::pair<std::string, FileFormat>>& documents) {
  std::vector<ParsedFile> files;
  for (const auto& [yaml, format] : documents)
    files.push_back(read_tree(parse_yaml(yaml, "x.yaml"), format));
  MergedJob job = merge_files(std::move(files));
  keep_stored_type(job.files, job.document, job);
  resolve_auto_values(job.files, job.document, job);
  assume_gpus(job.document, job.assumptions);
  return job;
}

// LLaMA-Factory loads frozen weights in the model's own type where the file says no precision.
TEST(MergeTest, LlamaFactorysAdaptersLieOverTheModelsOwnType) {
  const std::string file =
      "{model_name_or_path: meta-llama/Meta-Llama-3-8B, cutoff_len: 512, finetuning_type: ";
  const MergedJob adapters = read_documents({{file + "lora}", FileFormat::kLlamaFactory}});
  EXPECT_EQ(adapters.document.at("training").at("precision").as_string(), "bfloat16");
  const MergedJob full = read_documents({{file + "full}", FileFormat::kLlamaFactory}});
  EXPECT_EQ(full.document.at("training").find("precision"), nullptr);
}

TEST(MergeTest, ShardingAmongAnUnknownNumberOfGpusIsSaid) {
  const std::string model = "{model_name_or_path: gpt2, per_device_train_batch_size: 1, ";
  const auto sentences = [&](const std::string& deepspeed) {
    return read_documents({{model + "learning_rate: 1}", FileFormat::kTrainingArguments},
                           {deepspeed, FileFormat::kDeepSpeed}})
        .assumptions;
  };
  EXPECT_THAT(sentences("{zero_optimization: {stage: 3}}"),
              Contains(HasSubstr("no file says how many GPUs there are")));
  EXPECT_THAT(sentences("{zero_optimization: {stage: 0}}"), Not(Contains(HasSubstr("--num-gpus"))));
  EXPECT_THAT(sentences("{train_batch_size: 64}"),
              Contains(HasSubstr("train_batch_size 64 is of all GPUs")));
}

}  // namespace
}  // namespace memfathom
