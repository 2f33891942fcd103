// torchtune: recipes by the names of their components.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/readers/merge.h"
#include "estimator/readers/resolve_auto.h"
#include "tests/estimator/readers/parsed_value.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* kAdapters = R"(
model:
  _component_: torchtune.models.llama3_2.lora_llama3_2_1b
  lora_attn_modules: [q_proj, output_proj]
  apply_lora_to_mlp: true
  lora_rank: 16
tokenizer: {max_seq_len: 1024}
batch_size: 4
optimizer: {_component_: torch.optim.AdamW, fused: true, lr: 3e-4}
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
gradient_accumulation_steps: 8
enable_activation_checkpointing: true
enable_activation_offloading: false
dtype: bf16
compile: true
)";

TEST(TorchtuneTest, TheBuilderNamesTheModelAndItsAdapters) {
  const ParsedFile parsed = parse_config(kAdapters);
  EXPECT_EQ(parsed.format, FileFormat::kTorchtune);
  EXPECT_EQ(parsed.base_model, "llama3-2-1b");
  EXPECT_EQ(value_in(parsed, "training.lora.rank"), "16");
  EXPECT_EQ(value_in(parsed, "training.lora.targets"), "q_proj o_proj gate_proj down_proj up_proj");
  EXPECT_EQ(value_in(parsed, "training.lora.precision"), "bf16");
  EXPECT_EQ(value_in(parsed, "training.precision"), "bf16");
  EXPECT_EQ(value_in(parsed, "training.gradient_checkpointing"), "full");
  EXPECT_EQ(value_in(parsed, "training.sequence_length"), "1024");
  EXPECT_EQ(value_in(parsed, "training.optimizer.implementation"), "fused");
  EXPECT_THAT(parsed.not_modelled, Contains(HasSubstr("compile")));
}

TEST(TorchtuneTest, ItsModelIsFoundAmongThePresets) {
  const MergedJob job = merge_files({parse_config(kAdapters)});
  EXPECT_EQ(value_at(job.document, "model.preset")->as_string(), "llama3-2-1b");
}

TEST(TorchtuneTest, SeveralGpusShardWithItsOnlyWay) {
  MergedJob job = merge_files({parse_config(kAdapters)});
  Node document = job.document;
  resolve_auto_values(job.files, document, job);
  EXPECT_EQ(value_at(document, "parallel.fsdp"), nullptr);
  document.assign("parallel.num_gpus", Node::integer(4));
  resolve_auto_values(job.files, document, job);
  EXPECT_EQ(value_at(document, "parallel.fsdp")->as_string(), "full");
  EXPECT_EQ(value_at(document, "parallel.fsdp_version")->as_int(), 2);
}

TEST(TorchtuneTest, PagedStatesAndPreferencesAreRead) {
  const ParsedFile parsed = parse_config(
      "{model: {_component_: torchtune.models.llama2.llama2_7b}, optimizer: {_component_: "
      "bitsandbytes.optim.PagedAdamW8bit}, loss: {_component_: torchtune.rlhf.loss.DPOLoss}}");
  EXPECT_EQ(value_in(parsed, "training.optimizer"), "adamw-8bit");
  EXPECT_EQ(value_in(parsed, "training.preference.reference"), "model");
  EXPECT_THAT(parsed.not_modelled, Contains(HasSubstr("paged")));
}

TEST(TorchtuneTest, ARecipeWithoutAnOptimizerGeneratesOrEvaluates) {
  const ParsedFile generation = parse_config(
      "{model: {_component_: torchtune.models.llama2.llama2_7b}, dtype: bf16, prompt: {user: Tell "
      "me a joke.}, max_new_tokens: 300, enable_kv_cache: true, quantizer: null}");
  EXPECT_EQ(value_in(generation, "training.mode"), "generate");
  EXPECT_EQ(value_in(generation, "training.new_tokens"), "300");
  EXPECT_EQ(value_in(generation, "training.kv_cache"), "static");
  const ParsedFile evaluation = parse_config(
      "{model: {_component_: torchtune.models.llama2.llama2_7b}, tasks: [truthfulqa_mc2], "
      "max_seq_length: 4096, batch_size: 8, quantizer: {_component_: a.Int4Quantizer}}");
  EXPECT_EQ(value_in(evaluation, "training.mode"), "inference");
  EXPECT_EQ(value_in(evaluation, "training.sequence_length"), "4096");
  EXPECT_EQ(value_in(evaluation, "training.batch_size"), "8");
  ASSERT_EQ(evaluation.unread.size(), 1u);
  EXPECT_EQ(evaluation.unread[0].key, "quantizer");
  EXPECT_EQ(evaluation.unread[0].concerns, "precision");
}

TEST(TorchtuneTest, AQuantizedBaseIsFourBits) {
  const ParsedFile parsed = parse_config(
      "{model: {_component_: torchtune.models.llama3.lora_llama3_8b, lora_rank: 8, quantize_base: "
      "true}, optimizer: {_component_: torch.optim.AdamW}}");
  EXPECT_EQ(value_in(parsed, "training.quantization"), "nf4-double");
}

TEST(TorchtuneTest, TheOtherModelsOfReinforcementLearningLeaveTheVerdictOpen) {
  const ParsedFile parsed = parse_config(
      "{policy_model: {_component_: torchtune.models.mistral.mistral_7b}, reward_and_value_model: "
      "{_component_: torchtune.models.mistral.mistral_classifier, num_layers: 32}, optimizer: "
      "{_component_: torch.optim.AdamW}}");
  EXPECT_EQ(parsed.format, FileFormat::kTorchtune);
  EXPECT_EQ(parsed.base_model, "mistral-7b");
  ASSERT_EQ(parsed.unread.size(), 1u);
  EXPECT_EQ(parsed.unread[0].key, "reward_and_value_model");
}

}  // namespace
}  // namespace memfathom
