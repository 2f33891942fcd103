// torchtitan, LitGPT, ms-swift, verl and NeMo: what their files say of the job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/parse_toml.h"
#include "tests/estimator/readers/parsed_value.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

ParsedFile parsed_sample(const char* name) { return read_path(data(name)).front(); }

std::string open_keys(const ParsedFile& parsed) {
  std::string keys;
  for (const UnreadKey& key : parsed.unread) keys += (keys.empty() ? "" : " ") + key.key;
  return keys;
}

TEST(OtherTrainersTest, TorchtitanShardsFp32WeightsAndComputesInBf16) {
  const ParsedFile parsed = parsed_sample("torchtitan.toml");
  EXPECT_EQ(parsed.format, FileFormat::kTorchtitan);
  EXPECT_EQ(parsed.base_model, "Llama-3.1-8B");
  EXPECT_EQ(value_in(parsed, "training.batch_size"), "2");
  EXPECT_EQ(value_in(parsed, "training.sequence_length"), "4096");
  EXPECT_EQ(value_in(parsed, "training.precision"), "amp-bf16");
  EXPECT_EQ(value_in(parsed, "training.gradient_checkpointing"), "full");
  EXPECT_EQ(value_in(parsed, "training.optimizer.implementation"), "fused");
  EXPECT_EQ(value_in(parsed, "parallel.fsdp_version"), "2");
  EXPECT_EQ(value_in(parsed, "parallel.num_gpus"), "8");
  EXPECT_EQ(value_in(parsed, "parallel.tensor"), "2");
  EXPECT_EQ(open_keys(parsed), "");
}

TEST(OtherTrainersTest, ATorchtitanFlavorIsAModelByItself) {
  const auto model_of = [](const char* text) {
    const Node tree = parse_toml(text, "x.toml");
    return read_tree(tree, detect_format(tree)).base_model;
  };
  EXPECT_EQ(model_of("[model]\nname = 'llama2'\nflavor = '7B'\n[training]\nseq_len = 8\n"),
            "llama-2-7b");
  EXPECT_EQ(model_of("[model]\nname = 'qwen3'\nflavor = '0.6B'\n[training]\nseq_len = 8\n"),
            "qwen3-0.6b");
  EXPECT_THROW(parse_toml("[model\n", "x.toml"), Error);
}

TEST(OtherTrainersTest, LitgptSaysItsAdaptersByFlags) {
  const ParsedFile parsed = parsed_sample("litgpt.yaml");
  EXPECT_EQ(parsed.format, FileFormat::kLitgpt);
  EXPECT_EQ(parsed.base_model, "meta-llama/Llama-2-7b-hf");
  EXPECT_EQ(value_in(parsed, "training.precision"), "bf16");
  EXPECT_EQ(value_in(parsed, "training.quantization"), "nf4");
  EXPECT_EQ(value_in(parsed, "training.lora.targets"), "q_proj v_proj gate_proj up_proj down_proj");
  EXPECT_EQ(value_in(parsed, "training.gradient_accumulation_steps"), "4");
  EXPECT_EQ(value_in(parsed, "target.stack.library"), "litgpt");
  EXPECT_EQ(value_in(parsed, "parallel.fsdp"), "");
  EXPECT_EQ(open_keys(parsed), "");
}

TEST(OtherTrainersTest, LitgptShardsOverSeveralDevices) {
  const ParsedFile parsed = parse_config(
      "{model_name: tiny-llama-1.1b, devices: 4, num_nodes: 2, train: {global_batch_size: 512, "
      "micro_batch_size: 4, max_seq_length: 2048}}");
  EXPECT_EQ(value_in(parsed, "parallel.num_gpus"), "8");
  EXPECT_EQ(value_in(parsed, "parallel.fsdp"), "hybrid");
  EXPECT_EQ(value_in(parsed, "training.precision"), "amp-bf16");
}

TEST(OtherTrainersTest, MsSwiftTrainsAdaptersOverTheTypeItNames) {
  const std::vector<ParsedFile> files = read_path(data("ms_swift.yaml"));
  const ParsedFile& parsed = files.front();
  EXPECT_EQ(parsed.format, FileFormat::kMsSwift);
  EXPECT_EQ(parsed.base_model, "Qwen/Qwen2.5-7B-Instruct");
  EXPECT_EQ(value_in(parsed, "training.lora.rank"), "16");
  EXPECT_EQ(value_in(parsed, "training.precision"), "bf16");
  EXPECT_EQ(value_in(parsed, "training.autocast"), "bf16");
  EXPECT_EQ(value_in(parsed, "training.attention"), "flash");
  EXPECT_EQ(value_in(parsed, "training.gradient_checkpointing"), "full");
  EXPECT_EQ(open_keys(parsed), "");
  ASSERT_EQ(files.size(), 2u) << "zero2 is ms-swift's own DeepSpeed file";
  EXPECT_EQ(value_in(files[1], "parallel.zero_stage"), "2");
}

TEST(OtherTrainersTest, WhatSharesTheGpuWithVerlsActorLeavesTheVerdictOpen) {
  const ParsedFile parsed = parsed_sample("verl.yaml");
  EXPECT_EQ(parsed.format, FileFormat::kVerl);
  EXPECT_EQ(value_in(parsed, "training.sequence_length"), "1536");
  EXPECT_EQ(value_in(parsed, "training.batch_size"), "4");
  EXPECT_EQ(value_in(parsed, "training.lora.rank"), "32");
  EXPECT_EQ(value_in(parsed, "training.precision"), "amp-bf16");
  EXPECT_EQ(value_in(parsed, "parallel.fsdp_version"), "2");
  EXPECT_EQ(value_in(parsed, "parallel.offload.optimizer"), "cpu");
  EXPECT_EQ(value_in(parsed, "parallel.num_gpus"), "8");
  EXPECT_EQ(open_keys(parsed), "actor_rollout_ref.rollout");
}

TEST(OtherTrainersTest, AReferenceToAnotherKeyIsNamedAndNotRead) {
  const ParsedFile parsed = parse_config(
      "{model: {partial_pretrain: a/b-7B}, data: {micro_batch_size_per_gpu: '${x.y}', max_length: "
      "64}}");
  EXPECT_EQ(value_in(parsed, "training.batch_size"), "");
  EXPECT_EQ(open_keys(parsed), "data.micro_batch_size_per_gpu");
}

TEST(OtherTrainersTest, NemoAutomodelsSectionsAreRead) {
  const ParsedFile parsed = parsed_sample("nemo_automodel.yaml");
  EXPECT_EQ(parsed.format, FileFormat::kNemoAutomodel);
  EXPECT_EQ(parsed.base_model, "meta-llama/Llama-3.2-1B");
  EXPECT_EQ(value_in(parsed, "training.batch_size"), "4");
  EXPECT_EQ(value_in(parsed, "training.sequence_length"), "2048");
  EXPECT_EQ(value_in(parsed, "training.lora.targets"), "all-linear");
  EXPECT_EQ(value_in(parsed, "training.gradient_checkpointing"), "full");
  EXPECT_EQ(value_in(parsed, "parallel.num_gpus"), "8");
  EXPECT_EQ(open_keys(parsed), "");
}

TEST(OtherTrainersTest, NemoRlsPolicyIsRead) {
  const ParsedFile parsed = parsed_sample("nemo_rl.yaml");
  EXPECT_EQ(parsed.format, FileFormat::kNemoRl);
  EXPECT_EQ(value_in(parsed, "training.batch_size"), "2");
  EXPECT_EQ(value_in(parsed, "training.precision"), "amp-bf16");
  EXPECT_EQ(value_in(parsed, "training.lora.rank"), "");
  EXPECT_EQ(value_in(parsed, "parallel.num_gpus"), "8");
  EXPECT_EQ(open_keys(parsed), "");
  const ParsedFile inherits =
      parse_config("{defaults: ../base.yaml, policy: {model_name: a/b-7B}, grpo: {steps: 1}}");
  EXPECT_THAT(inherits.not_modelled, Contains(HasSubstr("`defaults`")));
}

}  // namespace
}  // namespace memfathom
