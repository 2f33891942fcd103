#include "estimator/readers/write_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/yaml_text.h"
#include "estimator/command_line/command_line.h"
#include "estimator/readers/merge.h"
#include "tests/estimator/readers/parsed_value.h"

namespace memfathom {
namespace {

using ::testing::IsEmpty;

Node yaml(const char* text) { return parse_yaml(text, "x.yaml"); }

TEST(WriteBackTest, ChangesGoIntoTheFileThatSaidTheKeyInItsOwnWords) {
  const WrittenBack written =
      write_back(read_sources({data("tiny-llama/config.json"), data("training_args.json"),
                               data("deepspeed.json")}),
                 {{"training.batch_size", Node::integer(1)},
                  {"training.optimizer", Node::string("adamw-8bit")},
                  {"training.gradient_checkpointing", Node::string("none")},
                  {"parallel.zero_stage", Node::integer(3)},
                  {"parallel.offload.parameters", Node::string("cpu")},
                  {"allocator.options", Node::string("expandable_segments:True")}});
  ASSERT_EQ(written.files.size(), 2U);
  EXPECT_TRUE(written.files[0].patch.same_value(yaml(
      "{per_device_train_batch_size: 1, optim: adamw_bnb_8bit, gradient_checkpointing: false}")));
  EXPECT_TRUE(written.files[1].patch.same_value(
      yaml("zero_optimization: {stage: 3, offload_param: {device: cpu}}")));
  ASSERT_EQ(written.left_over.size(), 1U);
  EXPECT_EQ(manual_setting(written.left_over.front()),
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
}

TEST(WriteBackTest, AxolotlIsToldKindTargetsAndBitsOfAnAdapter) {
  const WrittenBack written = write_back(
      {parse_config("{base_model: gpt2, micro_batch_size: 4}", "a.yaml")},
      {{"training.quantization", Node::string("nf4")}, {"training.lora.rank", Node::integer(16)}});
  EXPECT_THAT(written.left_over, IsEmpty());
  ASSERT_EQ(written.files.size(), 1U);
  EXPECT_TRUE(written.files[0].patch.same_value(yaml(
      "{load_in_8bit: false, load_in_4bit: true, adapter: qlora, bnb_config_kwargs: "
      "{bnb_4bit_use_double_quant: false}, lora_target_modules: [q_proj, v_proj], lora_r: 16}")))
      << to_yaml(written.files[0].patch);
}

TEST(WriteBackTest, AccelerateBecomesAnotherKindOfRun) {
  const ParsedFile file =
      parse_config("{distributed_type: MULTI_GPU, num_processes: 4}", "acc.yaml");
  EXPECT_TRUE(write_back({file}, {{"parallel.zero_stage", Node::integer(2)}})
                  .files.at(0)
                  .patch.same_value(
                      yaml("{distributed_type: DEEPSPEED, deepspeed_config: {zero_stage: 2}}")));
  EXPECT_TRUE(write_back({file}, {{"parallel.fsdp", Node::string("full")}})
                  .files.at(0)
                  .patch.same_value(yaml("{distributed_type: FSDP, fsdp_config: "
                                         "{fsdp_sharding_strategy: FULL_SHARD, "
                                         "fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}}")));
}

TEST(WriteBackTest, TrainingArgumentsGetADeepSpeedSectionAndItIsChangedInPlace) {
  const char* text = "{per_device_train_batch_size: 4, bf16: true}";
  const WrittenBack first =
      write_back({parse_config(text, "args.yaml")}, {{"parallel.zero_stage", Node::integer(2)}});
  EXPECT_THAT(first.left_over, IsEmpty());
  std::vector<ParsedFile> parsed_files;
  read_with_sections(first.files.at(0).content, FileFormat::kTrainingArguments, parsed_files);
  ASSERT_EQ(parsed_files.size(), 2U);
  const WrittenBack second = write_back(parsed_files, {{"parallel.zero_stage", Node::integer(3)}});
  EXPECT_TRUE(
      second.files.at(0).patch.same_value(yaml("deepspeed: {zero_optimization: {stage: 3}}")));
}

TEST(WriteBackTest, AWholeBatchGivesWayToItsParts) {
  const WrittenBack written =
      write_back({parse_config("{train_batch_size: 64, train_micro_batch_size_per_gpu: 8, "
                               "zero_optimization: {stage: 1}}",
                               "ds.yaml")},
                 {{"training.batch_size", Node::integer(4)}});
  EXPECT_THAT(written.left_over, IsEmpty());
  EXPECT_TRUE(written.files.at(0).patch.same_value(
      yaml("{train_batch_size: null, train_micro_batch_size_per_gpu: 4, "
           "gradient_accumulation_steps: 8}")));
}

// The Trainer refuses to start where its arguments and the DeepSpeed file disagree.
TEST(WriteBackTest, EveryFileThatSaysTheBatchIsChanged) {
  const WrittenBack written =
      write_back({parse_config("{output_dir: out, per_device_train_batch_size: 8, "
                               "gradient_accumulation_steps: 2, bf16: true}",
                               "args.yaml"),
                  parse_config("{train_batch_size: 128, train_micro_batch_size_per_gpu: 8, "
                               "gradient_accumulation_steps: 2, zero_optimization: {stage: 2}}",
                               "ds.yaml")},
                 {{"training.batch_size", Node::integer(1)},
                  {"training.gradient_accumulation_steps", Node::integer(16)}},
                 8);
  EXPECT_THAT(written.left_over, IsEmpty());
  ASSERT_EQ(written.files.size(), 2U);
  EXPECT_TRUE(written.files[0].patch.same_value(
      yaml("{per_device_train_batch_size: 1, gradient_accumulation_steps: 16}")))
      << to_yaml(written.files[0].patch);
  EXPECT_TRUE(written.files[1].patch.same_value(
      yaml("{train_batch_size: null, train_micro_batch_size_per_gpu: 1, "
           "gradient_accumulation_steps: 16}")))
      << to_yaml(written.files[1].patch);
}

TEST(WriteBackTest, AWholeBatchIsThatOfAllGpus) {
  const WrittenBack written =
      write_back({parse_config("{train_batch_size: 64, train_micro_batch_size_per_gpu: 8, "
                               "zero_optimization: {stage: 1}}",
                               "ds.yaml")},
                 {{"training.batch_size", Node::integer(4)}}, 8);
  EXPECT_TRUE(written.files.at(0).patch.same_value(
      yaml("{train_batch_size: null, train_micro_batch_size_per_gpu: 4, "
           "gradient_accumulation_steps: 1}")))
      << to_yaml(written.files[0].patch);
}

TEST(WriteBackTest, AFrozenModuleIsSaidByItsName) {
  const ParsedFile job = parse_config(
      "model: {modules: [{name: vggt, model: {preset: gpt2}, train: frozen, no_grad: true},"
      " {name: head, model: {preset: gpt2}}]}",
      "job.yaml");
  const ParsedFile own = parse_config(
      "{model: {freeze_vggt: false}, data: {batch_size: 8, height: 64, width: 32}}", "train.yaml");
  const MergedJob merged = merge_files({job, own});
  EXPECT_EQ(merged.document.at("model").at("modules").items()[0].at("train").as_string(), "full");
  const WrittenBack written =
      write_back({job, own}, {{"model.modules[0].train", Node::string("frozen")},
                              {"model.modules[0].no_grad", Node::boolean(true)},
                              {"training.image_size", yaml("[32, 16]")}});
  ASSERT_EQ(written.files.size(), 1U);
  EXPECT_TRUE(written.files[0].patch.same_value(
      yaml("{model: {freeze_vggt: true}, data: {height: 32, width: 16}}")))
      << to_yaml(written.files[0].patch);
  EXPECT_THAT(written.left_over, IsEmpty());
}

TEST(WriteBackTest, WhatAFormatCannotSayIsLeftOverAndTheFilesStayAsTheyAre) {
  const WrittenBack written = write_back(
      {parse_config("{output_dir: out, bf16: true}", "args.yaml")},
      {{"training.precision", Node::string("bf16")}, {"parallel.num_gpus", Node::integer(2)}});
  EXPECT_THAT(written.files, IsEmpty());
  EXPECT_EQ(written.left_over.size(), 2U);
}

}  // namespace
}  // namespace memfathom
