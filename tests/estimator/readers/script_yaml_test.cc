// Scripts' own YAML: the words of diffusers', timm's, nanoGPT's and Lightning's examples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/estimator/readers/parsed_value.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(ScriptYamlTest, DiffusersArgumentsSayResolutionBatchAndOptimizer) {
  const ParsedFile parsed = parse_config(
      "{pretrained_model_name_or_path: acme/some-diffusion, resolution: 512, train_batch_size: 4, "
      "mixed_precision: fp16, use_8bit_adam: true, use_ema: true, "
      "enable_xformers_memory_efficient_attention: true, gradient_checkpointing: true}");
  EXPECT_EQ(parsed.format, FileFormat::kTrainYaml);
  EXPECT_EQ(parsed.base_model, "acme/some-diffusion");
  EXPECT_EQ(value_in(parsed, "training.image_size"), "512");
  EXPECT_EQ(value_in(parsed, "training.batch_size"), "4");
  EXPECT_EQ(value_in(parsed, "training.precision"), "amp-fp16");
  EXPECT_EQ(value_in(parsed, "training.optimizer"), "adamw-8bit");
  EXPECT_EQ(value_in(parsed, "training.attention"), "efficient");
  EXPECT_THAT(parsed.not_modelled, Contains(HasSubstr("use_ema")));
}

TEST(ScriptYamlTest, AWidthADepthAndHeadsAreATransformerNotAFourierOperator) {
  const ParsedFile parsed = parse_config(
      "{batch_size: 12, block_size: 1024, n_layer: 12, n_head: 12, n_embd: 768, dtype: bfloat16}");
  EXPECT_EQ(value_in(parsed, "model.config.model_type"), "gpt2");
  EXPECT_EQ(value_in(parsed, "model.config.n_positions"), "1024");
  EXPECT_EQ(value_in(parsed, "training.sequence_length"), "1024");
  EXPECT_EQ(value_in(parsed, "training.precision"), "amp-bf16");
  EXPECT_THAT(parsed.assumptions, Contains(HasSubstr("GPT-2")));
}

TEST(ScriptYamlTest, AFeedForwardWidthBesideThemIsALlamas) {
  const ParsedFile parsed = parse_config(
      "{name: sft, model: {micro_batch_size: 1, tensor_model_parallel_size: 4, num_layers: 32, "
      "hidden_size: 4096, ffn_hidden_size: 11008, num_attention_heads: 32, encoder_seq_length: "
      "4096}}");
  EXPECT_EQ(value_in(parsed, "model.config.model_type"), "llama");
  EXPECT_EQ(value_in(parsed, "model.config.intermediate_size"), "11008");
  EXPECT_EQ(value_in(parsed, "parallel.tensor"), "4");
  EXPECT_EQ(value_in(parsed, "training.sequence_length"), "4096");
}

TEST(ScriptYamlTest, AModelsNameIsANameAndAFamilyIsAFamily) {
  EXPECT_EQ(parse_config("{model: vit_base_patch16_224, batch_size: 8, opt: adamw}").base_model,
            "vit_base_patch16_224");
  const ParsedFile family = parse_config("{model: {name: fno, hidden_dim: 32}, batch: 4}");
  EXPECT_EQ(value_in(family, "model.config.model_type"), "fno");
  EXPECT_EQ(family.base_model, "");
}

TEST(ScriptYamlTest, LightningSaysPrecisionAndDevicesInItsOwnWay) {
  const ParsedFile parsed = parse_config(
      "{model: {name: resnet50}, data: {batch_size: 64}, trainer: {precision: 16-mixed, devices: "
      "4}, optimizer: {_target_: torch.optim.SGD, lr: 0.1}}");
  EXPECT_EQ(value_in(parsed, "training.precision"), "amp-fp16");
  EXPECT_EQ(value_in(parsed, "parallel.num_gpus"), "4");
  EXPECT_EQ(value_in(parsed, "training.optimizer"), "sgd");
  const ParsedFile automatic =
      parse_config("{batch_size: 2, trainer: {devices: -1, precision: bf16-true}}");
  EXPECT_EQ(value_in(automatic, "parallel.num_gpus"), "");
  EXPECT_EQ(value_in(automatic, "training.precision"), "bf16");
}

}  // namespace
}  // namespace memfathom
