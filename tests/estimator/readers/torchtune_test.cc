// torchtune: recipes by the names of their components.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/readers/merge.h"
#include "estimator/readers/resolve.h"
#include "tests/estimator/readers/said.h"

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
  const Reading reading = reading_of(kAdapters);
  EXPECT_EQ(reading.format, FileFormat::kTorchtune);
  EXPECT_EQ(reading.base_model, "llama3-2-1b");
  EXPECT_EQ(said(reading, "training.lora.rank"), "16");
  EXPECT_EQ(said(reading, "training.lora.targets"), "q_proj o_proj gate_proj down_proj up_proj");
  EXPECT_EQ(said(reading, "training.lora.precision"), "bf16");
  EXPECT_EQ(said(reading, "training.precision"), "bf16");
  EXPECT_EQ(said(reading, "training.gradient_checkpointing"), "full");
  EXPECT_EQ(said(reading, "training.sequence_length"), "1024");
  EXPECT_EQ(said(reading, "training.optimizer.implementation"), "fused");
  EXPECT_THAT(reading.not_modelled, Contains(HasSubstr("compile")));
}

TEST(TorchtuneTest, ItsModelIsFoundAmongThePresets) {
  const MergedJob job = merge_files({reading_of(kAdapters)});
  EXPECT_EQ(value_at(job.document, "model.preset")->as_string(), "llama3-2-1b");
}

TEST(TorchtuneTest, SeveralGpusShardWithItsOnlyWay) {
  MergedJob job = merge_files({reading_of(kAdapters)});
  Node document = job.document;
  resolve_open(job.files, document, job);
  EXPECT_EQ(value_at(document, "parallel.fsdp"), nullptr);
  document.assign("parallel.num_gpus", Node::integer(4));
  resolve_open(job.files, document, job);
  EXPECT_EQ(value_at(document, "parallel.fsdp")->as_string(), "full");
  EXPECT_EQ(value_at(document, "parallel.fsdp_version")->as_int(), 2);
}

TEST(TorchtuneTest, PagedStatesAndPreferencesAreRead) {
  const Reading reading = reading_of(
      "{model: {_component_: torchtune.models.llama2.llama2_7b}, optimizer: {_component_: "
      "bitsandbytes.optim.PagedAdamW8bit}, loss: {_component_: torchtune.rlhf.loss.DPOLoss}}");
  EXPECT_EQ(said(reading, "training.optimizer"), "adamw-8bit");
  EXPECT_EQ(said(reading, "training.preference.reference"), "model");
  EXPECT_THAT(reading.not_modelled, Contains(HasSubstr("paged")));
}

}  // namespace
}  // namespace memfathom
