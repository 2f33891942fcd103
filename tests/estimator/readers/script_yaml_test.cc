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

TEST(ScriptYamlTest, SettingsAreReadUnderTheirUsualNamesInAnySection) {
  const ParsedFile flat = parse_config(
      "{model_name: gpt2, bs: 8, max_len: 256, grad_accum_steps: 4, grad_ckpt: true, n_gpu: 2, "
      "bf16: true}");
  EXPECT_EQ(value_in(flat, "training.batch_size"), "8");
  EXPECT_EQ(value_in(flat, "training.sequence_length"), "256");
  EXPECT_EQ(value_in(flat, "training.gradient_accumulation_steps"), "4");
  EXPECT_EQ(value_in(flat, "training.gradient_checkpointing"), "full");
  EXPECT_EQ(value_in(flat, "training.precision"), "amp-bf16");
  EXPECT_EQ(value_in(flat, "parallel.num_gpus"), "2");
  EXPECT_TRUE(flat.unread.empty()) << flat.unread[0].key;
  const ParsedFile sections = parse_config(
      "{model: {name: gpt2, max_seq_len: 512}, data: {batch: 16}, train: {fp16: true, "
      "accumulate_grad_batches: 2}}");
  EXPECT_EQ(value_in(sections, "training.batch_size"), "16");
  EXPECT_EQ(value_in(sections, "training.sequence_length"), "512");
  EXPECT_EQ(value_in(sections, "training.precision"), "amp-fp16");
  EXPECT_TRUE(sections.unread.empty()) << sections.unread[0].key;
}

TEST(ScriptYamlTest, TwoSpellingsThatDifferLeaveTheVerdictOpen) {
  const ParsedFile own =
      parse_config("{model_name: gpt2, batch_size: 4, train_batch_size: 64, seq_len: 512}");
  ASSERT_EQ(own.unread.size(), 1U);
  EXPECT_EQ(own.unread[0].key, "train_batch_size");
  EXPECT_EQ(own.unread[0].concerns, "batch");
  const ParsedFile same = parse_config("{model_name: gpt2, batch_size: 4, train: {batch_size: 4}}");
  EXPECT_TRUE(same.unread.empty());
  const ParsedFile trainer = parse_config(
      "{output_dir: x, per_device_train_batch_size: 1, max_length: 64, max_seq_length: 1024}");
  ASSERT_EQ(trainer.unread.size(), 1U);
  EXPECT_EQ(trainer.unread[0].concerns, "sizes");
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

TEST(ScriptYamlTest, AFourierOperatorIsReadInEverySpellingOfItsSizes) {
  for (const char* yaml :
       {"{model: {name: FNO2d, params: {modes1: 16, modes2: 12, width: 64, n_layers: 4}}, data: "
        "{shape: [128, 96]}, train_batchsize: 8}",
        "{model: {type: fno, n_modes: [16, 12], hidden_channels: 64, n_layers: 4}, data: {height: "
        "128, width: 96, train_batch_size: 8}}",
        "{arch: fno, fno: {n_modes: [16, 12], hidden_channels: 64, n_layers: 4}, data: {height: "
        "128, width: 96, batch_size: 8}}",
        "{model: {name: fno, args: {modes: [16, 12], width: 64, depth: 4}}, training: "
        "{train_batch_size: 8}, data: {shape: [128, 96]}}"}) {
    const ParsedFile parsed = parse_config(yaml);
    EXPECT_EQ(parsed.format, FileFormat::kTrainYaml) << yaml;
    EXPECT_EQ(value_in(parsed, "model.config.model_type"), "fno") << yaml;
    EXPECT_EQ(value_in(parsed, "model.config.hidden_size"), "64") << yaml;
    EXPECT_EQ(value_in(parsed, "model.config.num_hidden_layers"), "4") << yaml;
    EXPECT_EQ(value_in(parsed, "training.batch_size"), "8") << yaml;
    const Node settings = patch_tree(parsed.settings);
    EXPECT_EQ(value_at(settings, "model.config.modes")->as_ints(1, 64),
              (std::vector<std::int64_t>{16, 12}))
        << yaml;
    EXPECT_EQ(value_at(settings, "training.image_size")->as_ints(1, 256),
              (std::vector<std::int64_t>{128, 96}))
        << yaml;
    EXPECT_TRUE(parsed.unread.empty()) << yaml << parsed.unread[0].key;
  }
}

TEST(ScriptYamlTest, AUNetHasALevelForEachFactorOfItsChannels) {
  const ParsedFile parsed = parse_config(
      "{model: {name: unet, base_channels: 64, channel_mult: [1, 2, 4, 8], in_channels: 4}, "
      "resolution: 64, batch_size: 2}");
  EXPECT_EQ(value_in(parsed, "model.config.hidden_size"), "64");
  EXPECT_EQ(value_in(parsed, "model.config.layers"), "3");
  EXPECT_EQ(value_in(parsed, "model.config.in_channels"), "4");
  EXPECT_TRUE(parsed.unread.empty());
}

TEST(ScriptYamlTest, AScriptsSectionsAreNoJob) {
  EXPECT_EQ(parse_config("{model: {name: resnet50}, training: {batch_size: 8}}").format,
            FileFormat::kTrainYaml);
  EXPECT_EQ(parse_config("{model: {preset: gpt2}, training: {batch_size: 8}}").format,
            FileFormat::kJob);
  EXPECT_EQ(parse_config("{model: {presett: gpt2}, training: {batch_size: 8}}").format,
            FileFormat::kJob)
      << "a misspelled job is told so where it is read";
}

}  // namespace
}  // namespace memfathom
