// Files of Trainer scripts: evaluation, TRL's methods, Unsloth's words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/estimator/readers/said.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(TrainerFilesTest, PackedOrPaddedSamplesAllHaveTheGreatestLength) {
  const auto lengths = [](const char* yaml) { return said(reading_of(yaml), "training.lengths"); };
  EXPECT_EQ(lengths("{base_model: x/y-8b, micro_batch_size: 1, sample_packing: true}"), "fixed");
  EXPECT_EQ(lengths("{base_model: x/y-8b, micro_batch_size: 1, pad_to_sequence_len: true}"),
            "fixed");
  EXPECT_EQ(lengths("{base_model: x/y-8b, micro_batch_size: 1, sample_packing: false}"), "");
  EXPECT_EQ(lengths("{output_dir: x, learning_rate: 1e-4, packing: true}"), "fixed");
  EXPECT_EQ(lengths("{model_name_or_path: x/y-8b, stage: sft, cutoff_len: 512, packing: true}"),
            "fixed");
}

TEST(TrainerFilesTest, EvaluationHasItsOwnBatchesWhereItTakesPlace) {
  const Reading with = reading_of(
      "{per_device_train_batch_size: 2, per_device_eval_batch_size: 16, eval_strategy: steps}");
  EXPECT_EQ(said(with, "training.evaluation.batch_size"), "16");
  const Reading without =
      reading_of("{per_device_train_batch_size: 2, per_device_eval_batch_size: 16}");
  EXPECT_EQ(said(without, "training.evaluation.batch_size"), "");
  const Reading unsaid = reading_of("{per_device_train_batch_size: 2, evaluation_strategy: epoch}");
  EXPECT_EQ(said(unsaid, "training.evaluation.batch_size"), "8");
  EXPECT_THAT(unsaid.assumptions, Contains(HasSubstr("per_device_eval_batch_size")));
}

TEST(TrainerFilesTest, GeneratedAnswersAreAsLongAsPromptAndAnswerAndTheServerIsNamed) {
  const Reading reading = reading_of(
      "{output_dir: x, per_device_train_batch_size: 8, num_generations: 8, max_prompt_length: 512, "
      "max_completion_length: 1024, beta: 0.04, use_vllm: true, vllm_mode: colocate, "
      "vllm_gpu_memory_utilization: 0.4}");
  EXPECT_EQ(said(reading, "training.sequence_length"), "1536");
  EXPECT_EQ(said(reading, "training.preference.method"), "");
  EXPECT_THAT(reading.not_modelled, Contains(HasSubstr("takes 0.4 of it")));
}

TEST(TrainerFilesTest, BetaBesideATeacherIsNoPreference) {
  const Reading reading = reading_of(
      "{output_dir: x, per_device_train_batch_size: 2, beta: 0.5, teacher_model_name_or_path: "
      "acme/Big-70B}");
  EXPECT_EQ(said(reading, "training.preference.method"), "");
  EXPECT_THAT(reading.not_modelled, Contains(HasSubstr("acme/Big-70B")));
}

TEST(TrainerFilesTest, AMethodWithoutAReferenceHasNone) {
  const Reading reading =
      reading_of("{output_dir: x, per_device_train_batch_size: 2, beta: 2.0, simpo_gamma: 0.5}");
  EXPECT_EQ(said(reading, "training.preference.reference"), "none");
}

TEST(TrainerFilesTest, LlamaFactoryTrainsTheLastLayersOrTheOnesItsSectionsName) {
  const Reading freeze = reading_of(
      "{model_name_or_path: gpt2, finetuning_type: freeze, freeze_trainable_layers: 3, cutoff_len: "
      "64, stage: sft}");
  EXPECT_EQ(said(freeze, "model.train.last"), "3");
  const Reading orpo = reading_of(
      "{model_name_or_path: gpt2, finetuning_type: lora, cutoff_len: 64, stage: dpo, pref_loss: "
      "orpo}");
  EXPECT_EQ(said(orpo, "training.preference.reference"), "none");
  const Reading second = reading_of(
      "{model: Qwen/Qwen3-4B, model_class: llm, peft_config: {name: lora, r: 16, target_modules: "
      "all}, dist_config: {name: fsdp2}, micro_batch_size: 2, cutoff_len: 512, cp_size: 2, "
      "optim_config: {name: muon}}");
  EXPECT_EQ(second.format, FileFormat::kLlamaFactory);
  EXPECT_EQ(second.base_model, "Qwen/Qwen3-4B");
  EXPECT_EQ(said(second, "training.lora.rank"), "16");
  EXPECT_EQ(said(second, "training.batch_size"), "2");
  EXPECT_EQ(said(second, "parallel.fsdp_version"), "2");
  EXPECT_THAT(second.not_modelled, Contains(HasSubstr("cp_size")));
  EXPECT_THAT(second.not_modelled, Contains(HasSubstr("muon")));
}

TEST(TrainerFilesTest, UnslothsScriptsSayPeftsWords) {
  const Reading reading = reading_of(
      "{model_name: acme/Some-3B, max_seq_length: 2048, load_in_4bit: true, r: 16, lora_alpha: 16, "
      "target_modules: [q_proj, v_proj], use_gradient_checkpointing: unsloth, "
      "per_device_train_batch_size: 2, optim: adamw_8bit}");
  EXPECT_EQ(reading.base_model, "acme/Some-3B");
  EXPECT_EQ(said(reading, "training.lora.rank"), "16");
  EXPECT_EQ(said(reading, "training.lora.targets"), "q_proj v_proj");
  EXPECT_EQ(said(reading, "training.gradient_checkpointing"), "full");
  EXPECT_EQ(said(reading, "training.quantization"), "nf4");
}

}  // namespace
}  // namespace memfathom
