// Scripts' own YAML: the words of diffusers', timm's, nanoGPT's and Lightning's examples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/estimator/readers/said.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(ScriptYamlTest, DiffusersArgumentsSayResolutionBatchAndOptimizer) {
  const Reading reading = reading_of(
      "{pretrained_model_name_or_path: acme/some-diffusion, resolution: 512, train_batch_size: 4, "
      "mixed_precision: fp16, use_8bit_adam: true, use_ema: true, "
      "enable_xformers_memory_efficient_attention: true, gradient_checkpointing: true}");
  EXPECT_EQ(reading.format, FileFormat::kTrainYaml);
  EXPECT_EQ(reading.base_model, "acme/some-diffusion");
  EXPECT_EQ(said(reading, "training.image_size"), "512");
  EXPECT_EQ(said(reading, "training.batch_size"), "4");
  EXPECT_EQ(said(reading, "training.precision"), "amp-fp16");
  EXPECT_EQ(said(reading, "training.optimizer"), "adamw-8bit");
  EXPECT_EQ(said(reading, "training.attention"), "efficient");
  EXPECT_THAT(reading.not_modelled, Contains(HasSubstr("use_ema")));
}

TEST(ScriptYamlTest, AWidthADepthAndHeadsAreATransformerNotAFourierOperator) {
  const Reading reading = reading_of(
      "{batch_size: 12, block_size: 1024, n_layer: 12, n_head: 12, n_embd: 768, dtype: bfloat16}");
  EXPECT_EQ(said(reading, "model.config.model_type"), "gpt2");
  EXPECT_EQ(said(reading, "model.config.n_positions"), "1024");
  EXPECT_EQ(said(reading, "training.sequence_length"), "1024");
  EXPECT_EQ(said(reading, "training.precision"), "amp-bf16");
  EXPECT_THAT(reading.assumptions, Contains(HasSubstr("GPT-2")));
}

TEST(ScriptYamlTest, AFeedForwardWidthBesideThemIsALlamas) {
  const Reading reading = reading_of(
      "{name: sft, model: {micro_batch_size: 1, tensor_model_parallel_size: 4, num_layers: 32, "
      "hidden_size: 4096, ffn_hidden_size: 11008, num_attention_heads: 32, encoder_seq_length: "
      "4096}}");
  EXPECT_EQ(said(reading, "model.config.model_type"), "llama");
  EXPECT_EQ(said(reading, "model.config.intermediate_size"), "11008");
  EXPECT_EQ(said(reading, "parallel.tensor"), "4");
  EXPECT_EQ(said(reading, "training.sequence_length"), "4096");
}

TEST(ScriptYamlTest, AModelsNameIsANameAndAFamilyIsAFamily) {
  EXPECT_EQ(reading_of("{model: vit_base_patch16_224, batch_size: 8, opt: adamw}").base_model,
            "vit_base_patch16_224");
  const Reading family = reading_of("{model: {name: fno, hidden_dim: 32}, batch: 4}");
  EXPECT_EQ(said(family, "model.config.model_type"), "fno");
  EXPECT_EQ(family.base_model, "");
}

TEST(ScriptYamlTest, LightningSaysPrecisionAndDevicesInItsOwnWay) {
  const Reading reading = reading_of(
      "{model: {name: resnet50}, data: {batch_size: 64}, trainer: {precision: 16-mixed, devices: "
      "4}, optimizer: {_target_: torch.optim.SGD, lr: 0.1}}");
  EXPECT_EQ(said(reading, "training.precision"), "amp-fp16");
  EXPECT_EQ(said(reading, "parallel.num_gpus"), "4");
  EXPECT_EQ(said(reading, "training.optimizer"), "sgd");
  const Reading automatic =
      reading_of("{batch_size: 2, trainer: {devices: -1, precision: bf16-true}}");
  EXPECT_EQ(said(automatic, "parallel.num_gpus"), "");
  EXPECT_EQ(said(automatic, "training.precision"), "bf16");
}

}  // namespace
}  // namespace memfathom
