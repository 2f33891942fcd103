#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/yaml_text.h"
#include "estimator/readers/reading.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string data(const char* name) { return test_data().string() + "/readers/" + name; }

Node settings_of(const std::string& path) { return patch_tree(read_path(path).front().settings); }

Reading reading_of(const char* json) {
  const Node tree = parse_json(json, "x.json");
  return read_tree(tree, detect_format(tree));
}

TEST(FormatsTest, EachFileIsRecognisedByWhatItHolds) {
  EXPECT_EQ(read_path(data("training_args.json")).front().format, FileFormat::kTrainingArguments);
  EXPECT_EQ(read_path(data("deepspeed.json")).front().format, FileFormat::kDeepSpeed);
  EXPECT_EQ(read_path(data("accelerate.yaml")).front().format, FileFormat::kAccelerate);
  EXPECT_EQ(read_path(data("axolotl.yaml")).front().format, FileFormat::kAxolotl);
  EXPECT_EQ(read_path(data("fno_ocean.yaml")).front().format, FileFormat::kTrainYaml);
  EXPECT_EQ(read_path(data("tiny-llama/config.json")).front().format, FileFormat::kModelConfig);
}

TEST(FormatsTest, AFolderIsItsModelAndItsAdapter) {
  const std::vector<Reading> readings = read_path(data("tiny-llama"));
  ASSERT_EQ(readings.size(), 2U);
  EXPECT_EQ(readings[0].format, FileFormat::kModelConfig);
  EXPECT_EQ(readings[1].format, FileFormat::kAdapter);
  EXPECT_TRUE(
      patch_tree(readings[1].settings)
          .same_value(parse_yaml(
              "training: {lora: {rank: 4, targets: [q_proj, v_proj], dropout: 0.05}}", "x.yaml")));
}

TEST(FormatsTest, TrainingArgumentsBecomeTrainingKeys) {
  const Node training = settings_of(data("training_args.json")).at("training");
  EXPECT_EQ(training.at("batch_size").as_int(), 2);
  EXPECT_EQ(training.at("precision").as_string(), "amp-bf16");
  EXPECT_EQ(training.at("gradient_checkpointing").as_string(), "full");
  EXPECT_EQ(training.at("optimizer").at("implementation").as_string(), "fused");
  EXPECT_TRUE(training.at("gradient_clipping").as_bool());
  EXPECT_THAT(read_path(data("training_args.json")).front().not_modelled,
              Contains(HasSubstr("torch_compile")));
}

TEST(FormatsTest, TheTrainersOwnBatchOfEightIsAssumedAndSaid) {
  const Reading reading = reading_of(R"({"output_dir": "x", "fp16": true})");
  EXPECT_EQ(patch_tree(reading.settings).at("training").at("batch_size").as_int(), 8);
  EXPECT_THAT(reading.assumptions, Contains(HasSubstr("default of 8")));
}

TEST(FormatsTest, DeepSpeedSaysStagesBucketsAndOffloadAndLeavesAutoOpen) {
  const Reading reading = read_path(data("deepspeed.json")).front();
  const Node parallel = patch_tree(reading.settings).at("parallel");
  EXPECT_EQ(parallel.at("zero_stage").as_int(), 2);
  EXPECT_EQ(parallel.at("offload").at("optimizer").as_string(), "cpu");
  EXPECT_EQ(parallel.at("zero").at("allgather_bucket_size").as_int(), 200000000);
  EXPECT_THAT(reading.autos, Contains("zero_optimization.reduce_bucket_size"));
  EXPECT_THAT(reading.autos, Contains("bf16.enabled"));
}

TEST(FormatsTest, NvmeIsCountedAsHostMemoryAndSaid) {
  const Reading reading =
      reading_of(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}})");
  EXPECT_EQ(patch_tree(reading.settings).at("parallel").at("offload").at("parameters").as_string(),
            "cpu");
  EXPECT_THAT(reading.not_modelled, Contains(HasSubstr("NVMe")));
}

TEST(FormatsTest, AccelerateKnowsFsdp) {
  const Node settings = settings_of(data("accelerate.yaml"));
  EXPECT_EQ(settings.at("parallel").at("num_gpus").as_int(), 4);
  EXPECT_EQ(settings.at("parallel").at("fsdp").as_string(), "full");
  EXPECT_EQ(settings.at("training").at("precision").as_string(), "amp-bf16");
}

TEST(FormatsTest, AxolotlNamesItsModelByTheHub) {
  EXPECT_EQ(read_path(data("axolotl.yaml")).front().base_model, "NousResearch/Llama-2-7b-hf");
  const Node settings = settings_of(data("axolotl.yaml"));
  EXPECT_EQ(settings.at("training").at("quantization").as_string(), "nf4-double");
  EXPECT_EQ(settings.at("training").at("lora").at("targets").items().size(), 7U);
  EXPECT_EQ(settings.at("training").at("attention").as_string(), "flash");
}

TEST(FormatsTest, LlamaFactoryMeansAdaptersOnEveryLinearLayerAndCheckpointing) {
  const Reading reading = reading_of(R"({"model_name_or_path": "Qwen/Qwen2-7B-Instruct",
    "stage": "dpo", "finetuning_type": "lora", "lora_target": "all", "cutoff_len": 1024,
    "quantization_bit": 4, "flash_attn": "fa2", "bf16": true, "use_dora": true})");
  EXPECT_EQ(reading.format, FileFormat::kLlamaFactory);
  EXPECT_EQ(reading.base_model, "Qwen/Qwen2-7B-Instruct");
  const Node training = patch_tree(reading.settings).at("training");
  EXPECT_EQ(training.at("lora").at("rank").as_int(), 8);
  EXPECT_EQ(training.at("lora").at("targets").items().front().as_string(), "all-linear");
  EXPECT_EQ(training.at("quantization").as_string(), "nf4-double");
  EXPECT_EQ(training.at("preference").at("reference").as_string(), "disabled-adapter");
  EXPECT_EQ(training.at("gradient_checkpointing").as_string(), "full");
  EXPECT_EQ(training.at("attention").as_string(), "flash");
  EXPECT_EQ(training.at("precision").as_string(), "bf16");
  EXPECT_EQ(training.at("autocast").as_string(), "bf16");
  EXPECT_EQ(training.at("batch_size").as_int(), 8);
  EXPECT_THAT(reading.not_modelled, Contains(HasSubstr("use_dora")));
}

TEST(FormatsTest, LlamaFactoryTrainsWholeModelsInFp32UnderAutocast) {
  const Node whole =
      patch_tree(
          reading_of(R"({"finetuning_type": "full", "bf16": true, "lora_rank": 8})").settings)
          .at("training");
  EXPECT_EQ(whole.at("precision").as_string(), "amp-bf16");
  EXPECT_EQ(whole.find("lora"), nullptr);
  const Node pure =
      patch_tree(reading_of(R"({"finetuning_type": "full", "pure_bf16": true})").settings)
          .at("training");
  EXPECT_EQ(pure.at("precision").as_string(), "bf16");
}

TEST(FormatsTest, AWrongValueIsRefusedWithItsFileLineAndKey) {
  try {
    reading_of("{\"peft_type\": \"LORA\",\n \"r\": 0}");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "x.json:2: \"r\" is 0; it must be at least 1");
  }
  EXPECT_THROW(reading_of(R"({"bf16": {"enabled": "perhaps"}})"), Error);
  EXPECT_THROW(reading_of("[1, 2]"), Error);
  EXPECT_THROW(read_path(test_data().string()), Error);
}

}  // namespace
}  // namespace memfathom
