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

}  // namespace
}  // namespace memfathom
