// accelerate: what its YAML means for memory, and changes said in its words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/yaml_text.h"
#include "estimator/readers/write_back.h"
#include "tests/estimator/readers/parsed_value.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Node yaml(const char* text) { return parse_yaml(text, "y.yaml"); }

TEST(AccelerateTest, TheSecondFsdpSaysByAFlagWhetherItReshards) {
  const ParsedFile full = parse_config(
      "{distributed_type: FSDP, num_processes: 16, num_machines: 2, fsdp_config: {fsdp_version: 2, "
      "fsdp_reshard_after_forward: true, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}}");
  EXPECT_EQ(value_in(full, "parallel.fsdp"), "full");
  EXPECT_EQ(value_in(full, "parallel.fsdp_version"), "2");
  EXPECT_EQ(value_in(full, "parallel.gpus_per_node"), "8");
  EXPECT_THAT(full.not_modelled, IsEmpty());
  const ParsedFile kept = parse_config(
      "{distributed_type: FSDP, num_processes: 2, fsdp_config: {fsdp_reshard_after_forward: false, "
      "fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}}");
  EXPECT_THAT(kept.not_modelled, Contains(HasSubstr("SHARD_GRAD_OP")));
}

TEST(AccelerateTest, WhatIsAsModelledIsNotListedAndWhatIsNotIs) {
  const ParsedFile usual = parse_config(
      "{distributed_type: DEEPSPEED, num_processes: 4, dynamo_config: {dynamo_backend: 'NO'}, "
      "deepspeed_config: {zero_stage: 3, zero3_init_flag: true}}");
  EXPECT_THAT(usual.not_modelled, IsEmpty());
  const ParsedFile other = parse_config(
      "{distributed_type: DEEPSPEED, num_processes: 4, dynamo_config: {dynamo_backend: INDUCTOR}, "
      "deepspeed_config: {zero_stage: 3, zero3_init_flag: false}}");
  EXPECT_THAT(other.not_modelled, Contains(HasSubstr("torch.compile")));
  EXPECT_THAT(other.not_modelled, Contains(HasSubstr("zero3_init_flag is false")));
  const ParsedFile unwrapped = parse_config("{distributed_type: FSDP, num_processes: 2}");
  EXPECT_THAT(unwrapped.not_modelled, Contains(HasSubstr("gathers the whole model at once")));
}

TEST(AccelerateTest, EightBitComputationIsCountedAsAutocast) {
  const ParsedFile parsed =
      parse_config("{distributed_type: MULTI_GPU, num_processes: 8, mixed_precision: fp8}");
  EXPECT_EQ(value_in(parsed, "training.precision"), "amp-bf16");
  EXPECT_THAT(parsed.not_modelled, Contains(HasSubstr("fp8")));
}

// The order of a combination is that of its prices: what a change makes possible may come first.
TEST(AccelerateTest, ACombinationIsSaidWhole) {
  const ParsedFile file =
      parse_config("{distributed_type: MULTI_GPU, num_processes: 4}", "acc.yaml");
  const WrittenBack zero = write_back({file}, {{"parallel.offload.optimizer", Node::string("cpu")},
                                               {"parallel.offload.parameters", Node::string("cpu")},
                                               {"parallel.zero_stage", Node::integer(3)}});
  EXPECT_THAT(zero.left_over, IsEmpty());
  EXPECT_TRUE(zero.files.at(0).patch.same_value(
      yaml("{distributed_type: DEEPSPEED, deepspeed_config: {zero_stage: 3, "
           "offload_optimizer_device: cpu, offload_param_device: cpu}}")))
      << to_yaml(zero.files.at(0).patch);
  const WrittenBack fsdp =
      write_back({file}, {{"training.gradient_checkpointing", Node::string("full")},
                          {"parallel.fsdp", Node::string("full")}});
  EXPECT_THAT(fsdp.left_over, IsEmpty());
  EXPECT_TRUE(fsdp.files.at(0).patch.same_value(
      yaml("{distributed_type: FSDP, fsdp_config: {fsdp_sharding_strategy: FULL_SHARD, "
           "fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP, fsdp_activation_checkpointing: true}}")))
      << to_yaml(fsdp.files.at(0).patch);
}

TEST(AccelerateTest, WithoutDistributionOneProcessIsStarted) {
  const ParsedFile parsed =
      parse_config("{distributed_type: 'NO', num_processes: 8, mixed_precision: bf16}");
  EXPECT_EQ(value_in(parsed, "parallel.num_gpus"), "1");
  EXPECT_THAT(parsed.assumptions, Contains(HasSubstr("num_processes 8 is not used")));
}

TEST(AccelerateTest, ItsWordsInAnotherToolsFileAreThatTools) {
  const char* section = "fsdp_config: {fsdp_sharding_strategy: FULL_SHARD}";
  const auto format_of = [&](const std::string& keys) {
    return parse_config(("{" + keys + section + "}").c_str()).format;
  };
  EXPECT_EQ(format_of(""), FileFormat::kAccelerate);
  EXPECT_EQ(format_of("micro_batch_size: 1, sequence_len: 512, "), FileFormat::kAxolotl);
  EXPECT_EQ(format_of("output_dir: x, "), FileFormat::kTrainingArguments);
  EXPECT_EQ(format_of("finetuning_type: full, "), FileFormat::kLlamaFactory);
}

TEST(AccelerateTest, OtherHardwareLeavesTheVerdictOpen) {
  for (const char* yaml : {"{distributed_type: MULTI_CPU, num_processes: 16}",
                           "{distributed_type: MULTI_XPU, num_processes: 2}",
                           "{distributed_type: MULTI_GPU, num_processes: 2, use_cpu: true}"})
    EXPECT_EQ(parse_config(yaml).unread.size(), 1U) << yaml;
}

TEST(AccelerateTest, AxolotlsShardedCopiesAreHybridToo) {
  const ParsedFile parsed = parse_config(
      "{base_model: gpt2, micro_batch_size: 1, sequence_len: 128, fsdp_version: 2, dp_shard_size: "
      "4, dp_replicate_size: 2, tensor_parallel_size: 2, fsdp_config: {offload_params: false}}");
  EXPECT_EQ(value_in(parsed, "parallel.fsdp"), "hybrid");
  EXPECT_EQ(value_in(parsed, "parallel.num_gpus"), "16");
  EXPECT_EQ(value_in(parsed, "parallel.gpus_per_node"), "4");
}

TEST(AccelerateTest, ShardedCopiesAreHybrid) {
  const ParsedFile parsed = parse_config(
      "{distributed_type: FSDP, fsdp_config: {fsdp_version: 2, fsdp_auto_wrap_policy: "
      "TRANSFORMER_BASED_WRAP}, parallelism_config: "
      "{parallelism_config_dp_replicate_size: 2, parallelism_config_dp_shard_size: 4}}");
  EXPECT_EQ(value_in(parsed, "parallel.fsdp"), "hybrid");
  EXPECT_EQ(value_in(parsed, "parallel.num_gpus"), "8");
  EXPECT_EQ(value_in(parsed, "parallel.gpus_per_node"), "4") << "each copy is on four GPUs";
  EXPECT_TRUE(parsed.unread.empty());
}

}  // namespace
}  // namespace memfathom
