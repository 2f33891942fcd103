// Files of Trainer scripts: evaluation, TRL's methods, Unsloth's words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/estimator/readers/parsed_value.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(TrainerFilesTest, PackedOrPaddedSamplesAllHaveTheGreatestLength) {
  const auto lengths = [](const char* yaml) {
    return value_in(parse_config(yaml), "training.lengths");
  };
  EXPECT_EQ(lengths("{base_model: x/y-8b, micro_batch_size: 1, sample_packing: true}"), "fixed");
  EXPECT_EQ(lengths("{base_model: x/y-8b, micro_batch_size: 1, pad_to_sequence_len: true}"),
            "fixed");
  EXPECT_EQ(lengths("{base_model: x/y-8b, micro_batch_size: 1, sample_packing: false}"), "");
  EXPECT_EQ(lengths("{output_dir: x, learning_rate: 1e-4, packing: true}"), "fixed");
  EXPECT_EQ(lengths("{model_name_or_path: x/y-8b, stage: sft, cutoff_len: 512, packing: true}"),
            "fixed");
}

TEST(TrainerFilesTest, EvaluationHasItsOwnBatchesWhereItTakesPlace) {
  const ParsedFile with = parse_config(
      "{per_device_train_batch_size: 2, per_device_eval_batch_size: 16, eval_strategy: steps}");
  EXPECT_EQ(value_in(with, "training.evaluation.batch_size"), "16");
  const ParsedFile without =
      parse_config("{per_device_train_batch_size: 2, per_device_eval_batch_size: 16}");
  EXPECT_EQ(value_in(without, "training.evaluation.batch_size"), "");
  const ParsedFile unsaid =
      parse_config("{per_device_train_batch_size: 2, evaluation_strategy: epoch}");
  EXPECT_EQ(value_in(unsaid, "training.evaluation.batch_size"), "8");
  EXPECT_THAT(unsaid.assumptions, Contains(HasSubstr("per_device_eval_batch_size")));
}

TEST(TrainerFilesTest, CheckpointingHasAnotherNameFromTransformersFiveOn) {
  const ParsedFile parsed = parse_config(
      "{output_dir: x, per_device_train_batch_size: 2, activation_checkpointing: true, "
      "activation_checkpointing_kwargs: {use_reentrant: true}, use_cache: false, "
      "do_predict: false, dataloader_in_order: true, truncation_mode: keep_start}");
  EXPECT_EQ(value_in(parsed, "training.gradient_checkpointing"), "full");
  EXPECT_EQ(value_in(parsed, "training.checkpoint_reentrant"), "true");
  EXPECT_EQ(value_in(parsed, "training.use_cache"), "false");
  EXPECT_TRUE(parsed.unread.empty());
}

TEST(TrainerFilesTest, GeneratedAnswersAreAsLongAsPromptAndAnswerAndTheServerIsNamed) {
  const ParsedFile parsed = parse_config(
      "{output_dir: x, per_device_train_batch_size: 8, num_generations: 8, max_prompt_length: 512, "
      "max_completion_length: 1024, beta: 0.04, use_vllm: true, vllm_mode: colocate, "
      "vllm_gpu_memory_utilization: 0.4}");
  EXPECT_EQ(value_in(parsed, "training.sequence_length"), "1536");
  EXPECT_EQ(value_in(parsed, "training.preference.method"), "");
  EXPECT_THAT(parsed.not_modelled, Contains(HasSubstr("takes 0.4 of it")));
}

TEST(TrainerFilesTest, BetaBesideATeacherIsNoPreference) {
  const ParsedFile parsed = parse_config(
      "{output_dir: x, per_device_train_batch_size: 2, beta: 0.5, teacher_model_name_or_path: "
      "acme/Big-70B}");
  EXPECT_EQ(value_in(parsed, "training.preference.method"), "");
  EXPECT_THAT(parsed.not_modelled, Contains(HasSubstr("acme/Big-70B")));
}

TEST(TrainerFilesTest, AMethodWithoutAReferenceHasNone) {
  const ParsedFile parsed =
      parse_config("{output_dir: x, per_device_train_batch_size: 2, beta: 2.0, simpo_gamma: 0.5}");
  EXPECT_EQ(value_in(parsed, "training.preference.reference"), "none");
}

TEST(TrainerFilesTest, AxolotlsAdaptersAreTheirOwnReference) {
  const auto reference = [](const std::string& more) {
    const ParsedFile parsed = parse_config(
        ("{base_model: a/b-8B, sequence_len: 64, rl: dpo, lora_r: 8" + more + "}").c_str());
    EXPECT_TRUE(parsed.unread.empty()) << more;
    return value_in(parsed, "training.preference.reference");
  };
  EXPECT_EQ(reference(", adapter: lora"), "disabled-adapter");
  EXPECT_EQ(reference(", adapter: lora, rl_adapter_ref_model: true"), "");
  EXPECT_EQ(reference(""), "");
}

TEST(TrainerFilesTest, LlamaFactoryTrainsTheLastLayersOrTheOnesItsSectionsName) {
  const ParsedFile freeze = parse_config(
      "{model_name_or_path: gpt2, finetuning_type: freeze, freeze_trainable_layers: 3, cutoff_len: "
      "64, stage: sft}");
  EXPECT_EQ(value_in(freeze, "model.train.last"), "3");
  const ParsedFile orpo = parse_config(
      "{model_name_or_path: gpt2, finetuning_type: lora, cutoff_len: 64, stage: dpo, pref_loss: "
      "orpo}");
  EXPECT_EQ(value_in(orpo, "training.preference.reference"), "none");
  const ParsedFile second = parse_config(
      "{model: Qwen/Qwen3-4B, model_class: llm, peft_config: {name: lora, r: 16, target_modules: "
      "all}, dist_config: {name: fsdp2}, micro_batch_size: 2, cutoff_len: 512, cp_size: 2, "
      "optim_config: {name: muon}}");
  EXPECT_EQ(second.format, FileFormat::kLlamaFactory);
  EXPECT_EQ(second.base_model, "Qwen/Qwen3-4B");
  EXPECT_EQ(value_in(second, "training.lora.rank"), "16");
  EXPECT_EQ(value_in(second, "training.batch_size"), "2");
  EXPECT_EQ(value_in(second, "parallel.fsdp_version"), "2");
  EXPECT_THAT(second.not_modelled, Contains(HasSubstr("cp_size")));
  EXPECT_THAT(second.not_modelled, Contains(HasSubstr("muon")));
}

TEST(TrainerFilesTest, UnslothsScriptsSayPeftsWords) {
  const ParsedFile parsed = parse_config(
      "{model_name: acme/Some-3B, max_seq_length: 2048, load_in_4bit: true, r: 16, lora_alpha: 16, "
      "target_modules: [q_proj, v_proj], use_gradient_checkpointing: unsloth, "
      "per_device_train_batch_size: 2, optim: adamw_8bit}");
  EXPECT_EQ(parsed.base_model, "acme/Some-3B");
  EXPECT_EQ(value_in(parsed, "training.lora.rank"), "16");
  EXPECT_EQ(value_in(parsed, "training.lora.targets"), "q_proj v_proj");
  EXPECT_EQ(value_in(parsed, "training.gradient_checkpointing"), "full");
  EXPECT_EQ(value_in(parsed, "training.quantization"), "nf4");
}

TEST(TrainerFilesTest, LlamaFactoryPredictsGeneratesOrMergesWithoutTraining) {
  const ParsedFile predicts = parse_config(
      "{model_name_or_path: meta-llama/Meta-Llama-3-8B, finetuning_type: lora, do_predict: true, "
      "cutoff_len: 1024, per_device_eval_batch_size: 2, predict_with_generate: true, "
      "adapter_name_or_path: x}");
  EXPECT_EQ(value_in(predicts, "training.mode"), "generate");
  EXPECT_EQ(value_in(predicts, "training.batch_size"), "2");
  EXPECT_EQ(value_in(predicts, "training.lora.rank"), "");
  const ParsedFile serves = parse_config(
      "{model_name_or_path: meta-llama/Meta-Llama-3-8B, template: llama3, infer_backend: vllm}");
  EXPECT_EQ(serves.format, FileFormat::kLlamaFactory);
  ASSERT_FALSE(serves.unread.empty());
  EXPECT_EQ(serves.unread[0].key, "infer_backend");
  EXPECT_THROW(parse_config("{model_name_or_path: a, template: b, export_dir: c}"), Error);
}

TEST(TrainerFilesTest, ARewardModelReadsPairsAndHasNoLogits) {
  const ParsedFile parsed = parse_config(
      "{base_model: google/gemma-2-2b, reward_model: true, micro_batch_size: 2, sequence_len: 64}");
  EXPECT_EQ(value_in(parsed, "training.batch_size"), "4");
  EXPECT_EQ(value_in(parsed, "training.preference.method"), "");
  EXPECT_EQ(value_in(parsed, "training.fused_loss"), "true");
  EXPECT_EQ(parsed.unread.size(), 0u);
}

TEST(TrainerFilesTest, AxolotlsOtherPrecisionsAndExpertsLeaveTheVerdictOpen) {
  const auto open_key = [](const char* more) {
    const ParsedFile parsed =
        parse_config((std::string("{base_model: a/b-8B, sequence_len: 64, ") + more + "}").c_str());
    return parsed.unread.size() == 1 ? parsed.unread[0].key : "";
  };
  EXPECT_EQ(open_key("expert_parallel_size: 4"), "expert_parallel_size");
  EXPECT_EQ(open_key("nvfp4_merge_aware: true"), "nvfp4_merge_aware");
  EXPECT_EQ(open_key("fp8: true"), "fp8");
  EXPECT_EQ(open_key("rl: grpo"), "rl");
  EXPECT_EQ(open_key("bf16: auto"), "");
}

TEST(TrainerFilesTest, WordsOfYamlOneDotOneAreFlagsAndNumbers) {
  const ParsedFile parsed = parse_config(
      "{base_model: a/b-8B, sequence_len: 500_000, gradient_checkpointing: no, flash_attention: "
      "yes}");
  EXPECT_EQ(value_in(parsed, "training.sequence_length"), "500000");
  EXPECT_EQ(value_in(parsed, "training.gradient_checkpointing"), "none");
  EXPECT_EQ(value_in(parsed, "training.attention"), "flash");
}

TEST(TrainerFilesTest, TheTokenizersLengthIsThatOfASample) {
  const ParsedFile parsed = parse_config("{output_dir: x, model_max_length: 1024}");
  EXPECT_EQ(value_in(parsed, "training.sequence_length"), "1024");
}

}  // namespace
}  // namespace memfathom
