// Training commands as jobs, each as its project's documentation writes it.
#include "estimator/command_line/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "estimator/readers/merge.h"
#include "estimator/session/job_input.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

MergedJob read(const std::string& line) { return merge_files(read_script_text(line, "x.sh", 0)); }

std::string value(const MergedJob& job, std::string_view key) {
  const Node* found = value_at(job.document, key);
  if (found == nullptr) return "";
  return found->is_string() ? found->as_string() : found->shown();
}

std::vector<std::string> unread(const MergedJob& job) {
  std::vector<std::string> keys;
  for (const UnreadKey& key : job.unread) keys.push_back(key.key);
  return keys;
}

TEST(CommandLineTest, AFolderBehindAValueIsAnArgumentOfTheScript) {
  const MergedJob job = read("python main.py --arch resnet50 --batch-size 256 /data/imagenet");
  EXPECT_EQ(value(job, "training.batch_size"), "256");
  const MergedJob sizes = read(
      "python train.py --model_name_or_path gpt2 --use_peft --lora_target_modules c_attn c_proj "
      "./data --per_device_train_batch_size 2 train.csv");
  EXPECT_EQ(value(sizes, "training.batch_size"), "2");
  EXPECT_EQ(value_at(sizes.document, "training.lora.targets")->items().size(), 2u);
}

TEST(CommandLineTest, ScriptsWithALoopOfTheirOwnHavePyTorchsOptimizer) {
  const auto has_default = [](const char* script) {
    const MergedJob job = read(std::string("python ") + script +
                               " --model_name_or_path gpt2 --per_device_train_batch_size 2");
    return !job.files.back().default_optimizer.is_null();
  };
  EXPECT_TRUE(has_default("run_clm.py"));
  EXPECT_FALSE(has_default("run_clm_no_trainer.py"));
}

TEST(CommandLineTest, ReadsATrainerBehindTorchrun) {
  const MergedJob job = read(
      "torchrun --nnodes 2 --nproc_per_node=4 run_clm.py --model_name_or_path Qwen/Qwen2.5-7B "
      "--per_device_train_batch_size 2 --block_size 1024 --bf16 --gradient_checkpointing True "
      "--output_dir out --learning_rate 1e-5 --do_train --lr_scheduler_type cosine");
  EXPECT_EQ(value(job, "parallel.num_gpus"), "8");
  EXPECT_EQ(value(job, "parallel.gpus_per_node"), "4");
  EXPECT_EQ(value(job, "training.batch_size"), "2");
  EXPECT_EQ(value(job, "training.sequence_length"), "1024");
  EXPECT_EQ(value(job, "training.precision"), "amp-bf16");
  EXPECT_EQ(value(job, "training.gradient_checkpointing"), "full");
  EXPECT_EQ(value(job, "model.preset"), "Qwen2.5-7B");
  EXPECT_THAT(unread(job), IsEmpty());
}

TEST(CommandLineTest, TrlCheckpointsAndComputesInBf16UnlessToldOtherwise) {
  const MergedJob silent = read(
      "python trl/scripts/sft.py --model_name_or_path Qwen/Qwen2.5-7B --max_length 512 "
      "--per_device_train_batch_size 1");
  EXPECT_EQ(value(silent, "training.gradient_checkpointing"), "full");
  EXPECT_EQ(value(silent, "training.precision"), "amp-bf16");
  const MergedJob told = read(
      "trl sft --model_name_or_path Qwen/Qwen2.5-7B --max_length 512 --fp16 "
      "--gradient_checkpointing False --per_device_train_batch_size 1");
  EXPECT_EQ(value(told, "training.gradient_checkpointing"), "none");
  EXPECT_EQ(value(told, "training.precision"), "amp-fp16");
}

TEST(CommandLineTest, ReadsAcceleratesFlags) {
  const MergedJob job = read(
      "accelerate launch --num_processes 4 --use_fsdp --fsdp_sharding_strategy FULL_SHARD "
      "--fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP --mixed_precision bf16 train.py "
      "--model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 --max_length 512");
  EXPECT_EQ(value(job, "parallel.num_gpus"), "4");
  EXPECT_EQ(value(job, "parallel.fsdp"), "full");
  EXPECT_EQ(value(job, "training.precision"), "amp-bf16");
}

TEST(CommandLineTest, ReadsTheScriptOfTheExampleWithItsHereDocument) {
  const MergedJob job = merge_files(read_script(test_data().string() + "/command_lines/train.sh"));
  EXPECT_EQ(value(job, "parallel.num_gpus"), "4");
  EXPECT_EQ(value(job, "parallel.zero_stage"), "2");
  EXPECT_EQ(value(job, "training.batch_size"), "2");
  EXPECT_EQ(value(job, "training.sequence_length"), "2048");
  EXPECT_EQ(value(job, "model.preset"), "Qwen2.5-7B");
  EXPECT_THAT(unread(job), IsEmpty());
}

TEST(CommandLineTest, NamesAValueThatTheScriptDoesNotSet) {
  const MergedJob job = read(
      "python train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size $BATCH "
      "--max_length 512 --output_dir $OUT");
  ASSERT_THAT(unread(job), ElementsAre("per_device_train_batch_size"));
  EXPECT_EQ(job.unread.front().concerns, "batch");
  EXPECT_EQ(job.unread.front().value, "$BATCH");
}

TEST(CommandLineTest, NamesAllUnknownFlagsAtOnce) {
  const MergedJob job = read(
      "python train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 "
      "--max_length 512 --wobble 3 --expert_layers 4 --learning_rate 1");
  EXPECT_THAT(unread(job), ElementsAre("wobble", "expert_layers"));
  EXPECT_EQ(job.unread[0].concerns, "");
  EXPECT_EQ(job.unread[1].concerns, "model");
}

TEST(CommandLineTest, AnUnknownModelIsRefused) {
  JobInput input;
  input.files = read("python train.py --model_name_or_path $MODEL --per_device_train_batch_size 1");
  input.document = input.files.document;
  try {
    complete(input);
    FAIL() << "a job without a model was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), HasSubstr("$MODEL"));
  }
}

TEST(CommandLineTest, AFlagOfOursSettlesWhatTheScriptLeavesOpen) {
  JobInput input;
  input.files = read(
      "python train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size $BATCH "
      "--max_length 512");
  input.document = input.files.document;
  input.document.assign("training.batch_size", Node::integer(3));
  complete(input);
  EXPECT_EQ(input.files.unread.front().concerns, "");
}

TEST(CommandLineTest, ReadsMsSwift) {
  const MergedJob job = read(
      "CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 swift sft --model Qwen/Qwen2.5-7B-Instruct "
      "--train_type lora --lora_rank 16 --target_modules all-linear --torch_dtype bfloat16 "
      "--per_device_train_batch_size 1 --max_length 2048 --deepspeed zero3_offload");
  EXPECT_EQ(value(job, "parallel.num_gpus"), "2");
  EXPECT_EQ(value(job, "parallel.zero_stage"), "3");
  EXPECT_EQ(value(job, "parallel.offload.parameters"), "cpu");
  EXPECT_EQ(value(job, "training.lora.rank"), "16");
  EXPECT_THAT(unread(job), IsEmpty());
}

TEST(CommandLineTest, ReadsMegatronsArguments) {
  const MergedJob job = read(
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
      "--ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention "
      "--num-query-groups 8 --swiglu --normalization RMSNorm --seq-length 8192 "
      "--max-position-embeddings 8192 --micro-batch-size 1 --bf16 --use-distributed-optimizer "
      "--tensor-model-parallel-size 2 --sequence-parallel --vocab-size 128256 "
      "--untie-embeddings-and-output-weights --lr 1e-4 --train-iters 10");
  EXPECT_EQ(value(job, "model.config.model_type"), "llama");
  EXPECT_EQ(value(job, "model.config.num_key_value_heads"), "8");
  EXPECT_EQ(value(job, "model.config.intermediate_size"), "14336");
  EXPECT_EQ(value(job, "parallel.tensor"), "2");
  EXPECT_EQ(value(job, "parallel.zero_stage"), "1");
  EXPECT_EQ(value(job, "training.sequence_length"), "8192");
  // Its buffers of fp32 gradients are not counted.
  EXPECT_THAT(unread(job), ElementsAre("bf16"));
}

TEST(CommandLineTest, WhatMegatronAndVerlDivideOrAddLeavesTheVerdictOpen) {
  const std::string megatron =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 "
      "--num-attention-heads 2 --seq-length 128 --micro-batch-size 1 --swiglu ";
  for (const char* flag :
       {"--context-parallel-size 2", "--expert-model-parallel-size 2", "--recompute-num-layers 2",
        "--use-precision-aware-optimizer", "--mtp-num-layers 1", "--hidden-dropout 0.1"}) {
    const std::string key = std::string(flag).substr(2, std::string(flag).find(' ') - 2);
    std::string spelled = key;
    for (char& c : spelled) c = c == '-' ? '_' : c;
    const MergedJob job = read(megatron + flag);
    const auto found = std::find_if(job.unread.begin(), job.unread.end(),
                                    [&](const UnreadKey& one) { return one.key == spelled; });
    ASSERT_NE(found, job.unread.end()) << flag;
    EXPECT_FALSE(found->concerns.empty()) << flag;
  }
  const MergedJob ppo = read(
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B "
      "data.max_prompt_length=512 data.max_response_length=1024 "
      "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 "
      "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2");
  EXPECT_THAT(unread(ppo), Contains("rollout"));
  EXPECT_THAT(unread(ppo), Contains("actor_rollout_ref.actor.ulysses_sequence_parallel_size"));
}

TEST(CommandLineTest, ReadsOpenRlhfAndVerl) {
  const MergedJob sft = read(
      "deepspeed --module openrlhf.cli.train_sft --max_len 2048 --micro_train_batch_size 2 "
      "--pretrain meta-llama/Meta-Llama-3-8B --zero_stage 2 --param_dtype bf16 --lora_rank 8 "
      "--gradient_checkpointing --packing_samples");
  EXPECT_EQ(value(sft, "training.batch_size"), "2");
  EXPECT_EQ(value(sft, "parallel.zero_stage"), "2");
  EXPECT_EQ(value(sft, "training.lora.rank"), "8");
  const MergedJob ppo = read(
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B "
      "data.max_prompt_length=512 data.max_response_length=1024 "
      "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 trainer.n_gpus_per_node=8 "
      "trainer.nnodes=1 actor_rollout_ref.model.enable_gradient_checkpointing=True");
  EXPECT_EQ(value(ppo, "training.sequence_length"), "1536");
  EXPECT_EQ(value(ppo, "training.batch_size"), "4");
  EXPECT_EQ(value(ppo, "parallel.num_gpus"), "8");
  EXPECT_THAT(ppo.not_modelled, Contains(HasSubstr("generated")));
}

TEST(CommandLineTest, ReadsDiffusersAndKohyasScripts) {
  const MergedJob lora = read(
      "accelerate launch --mixed_precision=fp16 train_text_to_image_lora.py "
      "--pretrained_model_name_or_path=stable-diffusion-v1-5/stable-diffusion-v1-5 "
      "--resolution=512 --train_batch_size=2 --rank=8 --random_flip");
  EXPECT_EQ(value(lora, "training.image_size"), "512");
  EXPECT_EQ(value(lora, "training.lora.rank"), "8");
  EXPECT_EQ(value(lora, "training.precision"), "fp16");
  EXPECT_THAT(unread(lora), IsEmpty());
  const MergedJob kohya = read(
      "accelerate launch sdxl_train_network.py --pretrained_model_name_or_path=model.safetensors "
      "--network_module=networks.lora --network_dim=16 --resolution=1024,1024 --train_batch_size=1 "
      "--optimizer_type=AdamW8bit --mixed_precision=bf16 --gradient_checkpointing");
  EXPECT_EQ(value(kohya, "model.preset"), "sdxl");
  EXPECT_EQ(value(kohya, "training.lora.rank"), "16");
  EXPECT_EQ(value(kohya, "training.optimizer"), "adamw-8bit");
}

TEST(CommandLineTest, AsksWhichOfSeveralCommandsIsMeant) {
  const std::string script = "python train.py --batch_size 1\n\npython train.py --batch_size 2\n";
  try {
    read_script_text(script, "x.sh", 0);
    FAIL() << "one of two commands was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("lines 1, 3"));
  }
  const MergedJob second = merge_files(read_script_text(script, "x.sh", 3));
  EXPECT_EQ(value(second, "training.batch_size"), "2");
}

TEST(CommandLineTest, RefusesACommandThatStartsNoTraining) {
  EXPECT_THROW(read_command_line({"ls", "-l"}), Error);
  EXPECT_THROW(read_command_line({}), Error);
}

TEST(CommandLineTest, ACommandAsWordsIsTheSameAsItsText) {
  const std::string line =
      "CUDA_VISIBLE_DEVICES=0,1 deepspeed train.py --model_name_or_path Qwen/Qwen2.5-7B "
      "--per_device_train_batch_size 1 --max_length 512 --deepspeed zero2.json";
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  const MergedJob from_words = merge_files(read_command_line(words));
  EXPECT_TRUE(from_words.document.same_value(read(line).document));
  EXPECT_EQ(value(from_words, "parallel.num_gpus"), "2");
  EXPECT_EQ(value(from_words, "parallel.zero_stage"), "2");
}

JobInput completed(const std::string& line) {
  JobInput input;
  input.files = read(line);
  input.document = input.files.document;
  complete(input);
  return input;
}

TEST(ModelNameTest, ANameAndItsFolderHaveWeightsOfTheSameType) {
  const std::string flags = " --per_device_train_batch_size 1 --max_length 64 --bf16";
  const JobInput named = completed("python train.py --model_name_or_path Qwen/Qwen2.5-7B" + flags);
  const TemporaryDirectory folder;
  std::ofstream(folder / "config.json")
      << R"({"model_type": "qwen2", "torch_dtype": "bfloat16", "hidden_size": 64,
             "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "vocab_size": 1000})";
  const JobInput here = completed("python train.py --model_name_or_path " +
                                  (folder / "config.json").string() + flags);
  for (const char* key : {"training.precision", "training.autocast"}) {
    ASSERT_NE(value_at(named.document, key), nullptr) << key;
    ASSERT_NE(value_at(here.document, key), nullptr) << key;
    EXPECT_TRUE(value_at(named.document, key)->same_value(*value_at(here.document, key))) << key;
  }
  EXPECT_THAT(named.files.assumptions, Contains(HasSubstr("--precision amp-bf16")));
}

TEST(ModelNameTest, TrlLoadsWeightsInFloat32UnlessToldOtherwise) {
  const auto precision_of = [](const std::string& line) {
    JobInput input;
    input.files = read(line);
    input.document = input.files.document;
    complete(input);
    return value_at(input.document, "training.precision")->as_string();
  };
  const std::string trl = "trl sft --model_name_or_path Qwen/Qwen2.5-7B --max_length 512 ";
  EXPECT_EQ(precision_of(trl), "amp-bf16");
  EXPECT_EQ(precision_of(trl + "--dtype bfloat16"), "bf16");
  EXPECT_EQ(precision_of(trl + "--dtype auto"), "bfloat16");
  // transformers' own scripts load what is stored; version 5 on.
  const std::string own = "python train.py --model_name_or_path Qwen/Qwen2.5-7B --output_dir x ";
  EXPECT_EQ(precision_of(own), "bfloat16");
  EXPECT_EQ(precision_of(own + "--bf16"), "bfloat16");
}

TEST(ModelNameTest, AModelWhoseSizeAloneIsKnownHasAWiderInterval) {
  const JobInput input = completed(
      "python train.py --model_name_or_path acme/new-9B --per_device_train_batch_size 1 "
      "--max_length 64 --bf16");
  EXPECT_TRUE(input.files.is_model_guessed);
  Estimate estimate;
  estimate.totals.device_peak = estimate.totals.device_low = estimate.totals.device_high =
      Bytes{1000};
  estimate.verdict.status = VerdictStatus::kFits;
  estimate.verdict.available = Bytes{1500};
  estimate.verdict.probability_fits = 0.99;
  input.widen(estimate);
  EXPECT_EQ(estimate.totals.device_low.count(), 710);
  EXPECT_EQ(estimate.totals.device_high.count(), 1910);
  EXPECT_EQ(estimate.verdict.status, VerdictStatus::kTight);
  EXPECT_FALSE(estimate.verdict.probability_fits.has_value());
}

TEST(CommandLineTest, ARecipeIsNotOverruledByDefaultsOfItsScript) {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() / "recipe.yaml")
      << "model_name_or_path: Qwen/Qwen2.5-7B\nmax_length: 8192\nbeta: 2\nloss_type: simpo\n"
         "per_device_train_batch_size: 2\n";
  const std::string script = (folder.path() / "x.sh").string();
  const MergedJob sft = merge_files(read_script_text(
      "accelerate launch src/sft.py --config recipe.yaml --output_dir out", script, 0));
  EXPECT_EQ(value(sft, "training.sequence_length"), "8192");
  const MergedJob orpo = merge_files(read_script_text(
      "accelerate launch run_orpo.py --config recipe.yaml --output_dir out", script, 0));
  EXPECT_EQ(value(orpo, "training.preference.reference"), "none");
}

TEST(CommandLineTest, SimpoHasNoReference) {
  const MergedJob job = read(
      "python scripts/run_simpo.py --model_name_or_path Qwen/Qwen2.5-7B --max_length 512 "
      "--per_device_train_batch_size 2 --learning_rate 1e-6 --gamma_beta_ratio 0.5");
  EXPECT_EQ(value(job, "training.preference.reference"), "none");
}

TEST(CommandLineTest, TargetModulesAreReadWithoutTrlsPrefix) {
  const MergedJob job = read(
      "python supervised_finetuning.py --model_name_or_path Qwen/Qwen2.5-7B --use_peft True "
      "--target_modules all --lora_rank 8 --per_device_train_batch_size 2 --max_length 512");
  EXPECT_EQ(value(job, "training.lora.targets"), "all-linear");
}

TEST(CommandLineTest, ARankWithoutUsePeftLeavesTheVerdictOpen) {
  const MergedJob job = read(
      "python finetune.py --model_name_or_path Qwen/Qwen2.5-7B --lora_r 8 --lora_alpha 16 "
      "--per_device_train_batch_size 2 --max_length 512 --output_dir out");
  EXPECT_THAT(unread(job), Contains("lora_r"));
}

TEST(CommandLineTest, OptionsThatOnlyARunKnowsAreNoProgram) {
  const MergedJob job = read(
      "deepspeed ${DEEPSPEED_ARGS} contrib/reward_modeling.py --model_name_or_path gpt2 "
      "--block_size 512 --per_device_train_batch_size 1");
  EXPECT_EQ(value(job, "training.preference.reference"), "none");
  EXPECT_THAT(unread(job), Contains(HasSubstr("DEEPSPEED_ARGS")));
}

TEST(CommandLineTest, WhatNothingCallsATrainingStaysOpen) {
  const MergedJob job = read(
      "torchrun --nproc_per_node 2 run_attention_cp.py --model_name_or_path Qwen/Qwen2.5-7B "
      "--max_length 2048");
  EXPECT_THAT(unread(job), Contains("run_attention_cp.py"));
}

TEST(CommandLineTest, VariantsOfLoraInAScriptsNameStayOpen) {
  for (const char* script : {"bdlora_finetuning.py", "monteclora_finetuning.py",
                             "shira_finetuning.py", "vera_finetuning.py", "train_oft.py",
                             "boft_dreambooth.py", "ia3_finetuning.py", "kasa_finetuning.py"}) {
    const MergedJob job = read(std::string("python ") + script +
                               " --model_name_or_path Qwen/Qwen2.5-7B --max_length 512 "
                               "--per_device_train_batch_size 2 --output_dir out");
    EXPECT_THAT(unread(job), Contains(script));
  }
}

TEST(CommandLineTest, AFolderOfAPipelineIsReadAsThePipeline) {
  const std::string folder =
      (test_data() / "../../examples/from-your-script/CogVideoX-5b").string();
  const MergedJob job = read("python train_unlearning_prompt_only.py --model_path " + folder +
                             " --target_concept nudity --batch_size 4 --use_fp16 --multi_gpu");
  EXPECT_NE(value_at(job.document, "model.modules"), nullptr);
  EXPECT_EQ(value(job, "training.batch_size"), "4");
  EXPECT_THAT(unread(job), Contains("multi_gpu"));
}

const Node& module_of(const MergedJob& job, std::string_view name) {
  static const Node kNone = Node::map();
  for (const Node& module : value_at(job.document, "model.modules")->items()) {
    if (text_at(module, "name") == name) return module;
  }
  return kNone;
}

TEST(CommandLineTest, DiffusersScriptsKeepWhatTheyKeepOnTheGpu) {
  const MergedJob full = read(
      "accelerate launch --mixed_precision=bf16 train_text_to_image.py "
      "--pretrained_model_name_or_path=CompVis/stable-diffusion-v1-4 --use_ema --use_8bit_adam");
  EXPECT_THAT(unread(full), IsEmpty());
  EXPECT_EQ(value(full, "training.precision"), "amp-bf16");
  EXPECT_EQ(value(full, "training.batch_size"), "16");  // the script's defaults
  EXPECT_EQ(value(full, "training.image_size"), "512");
  EXPECT_EQ(text_at(module_of(full, "vae"), "precision"), "bf16");
  EXPECT_EQ(text_at(module_of(full, "ema"), "precision"), "fp32");
  EXPECT_EQ(text_at(module_of(full, "unet"), "train"), "full");

  const MergedJob xl = read(
      "accelerate launch train_dreambooth_lora_sdxl.py --mixed_precision fp16 --rank 16 "
      "--pretrained_model_name_or_path=stabilityai/stable-diffusion-xl-base-1.0 "
      "--train_batch_size=2 --with_prior_preservation");
  EXPECT_EQ(value(xl, "training.batch_size"), "4");  // as many of the class
  EXPECT_EQ(value(xl, "training.lora.rank"), "16");
  EXPECT_EQ(text_at(module_of(xl, "vae"), "precision"), "fp32");
  EXPECT_TRUE(module_of(xl, "text_encoder").entries().empty());  // gone before the first step

  const MergedJob latents = read(
      "accelerate launch train_text_to_image_sdxl.py --mixed_precision fp16 "
      "--pretrained_model_name_or_path=stabilityai/stable-diffusion-xl-base-1.0");
  EXPECT_EQ(value_at(latents.document, "model.modules")->items().size(), 1U);
}

TEST(CommandLineTest, AnotherProjectsScriptOfADiffusersNameStaysOpen) {
  for (const char* line :
       {"python boft_dreambooth/train_dreambooth.py --pretrained_model_name_or_path "
        "CompVis/stable-diffusion-v1-4 --train_batch_size 1 --resolution 512",
        "python train_dreambooth.py --pretrained_model_name_or_path CompVis/stable-diffusion-v1-4 "
        "--train_batch_size 1 --use_oft",
        "python train_controlnet.py --pretrained_model_name_or_path CompVis/stable-diffusion-v1-4 "
        "--train_batch_size 1 --resolution 512"})
    EXPECT_THAT(unread(read(line)), Not(IsEmpty())) << line;
}

// --use_lora of anybody's script is not TRL's use_peft: neither its rank nor its other defaults.
TEST(CommandLineTest, AdaptersOfAnUnknownScriptHaveNoRank) {
  const std::string command =
      "python finetune.py --model_name_or_path Qwen/Qwen2.5-7B --model_max_length 512 "
      "--per_device_train_batch_size 1 --learning_rate 1e-4 --output_dir out --bf16 True "
      "--use_lora True";
  const MergedJob job = read(command);
  EXPECT_THAT(unread(job), Contains("use_lora"));
  EXPECT_EQ(value(job, "training.gradient_checkpointing"), "");
  EXPECT_THAT(job.assumptions, Not(Contains(HasSubstr("TRL"))));
  EXPECT_THAT(unread(read(command + " --lora_r 8")), IsEmpty());
}

TEST(CommandLineTest, LitgptsDefaultsAreItsOwn) {
  const MergedJob tuned = read("litgpt finetune meta-llama/Llama-3.2-3B-Instruct");
  EXPECT_EQ(value(tuned, "training.precision"), "amp-bf16");
  EXPECT_EQ(value(tuned, "training.batch_size"), "1");
  EXPECT_EQ(value(tuned, "training.lora.rank"), "8");
  EXPECT_EQ(value(tuned, "model.preset"), "Llama-3.2-3B");
  EXPECT_THAT(tuned.assumptions, Contains(HasSubstr("bf16-mixed, LitGPT's default")));
  const MergedJob quantized =
      read("litgpt finetune_lora tiiuae/falcon-7b --quantize bnb.nf4 --lora_key true");
  EXPECT_EQ(value(quantized, "training.precision"), "bf16");
  EXPECT_EQ(value(quantized, "training.quantization"), "nf4");
  EXPECT_EQ(value_at(quantized.document, "training.lora.targets")->items().size(), 3U);
  const MergedJob trained = read("litgpt pretrain gemma-2b --train.max_seq_length 1024");
  EXPECT_EQ(value(trained, "training.batch_size"), "4");
  EXPECT_EQ(value(trained, "training.lora.rank"), "");
  EXPECT_THAT(trained.assumptions, Contains(HasSubstr("devices: auto")));
}

TEST(CommandLineTest, CopiesOfWholeModulesAreNamed) {
  EXPECT_THAT(unread(read("swift sft --model Qwen/Qwen2.5-7B --max_length 512 --modules_to_save "
                          "embed_tokens lm_head")),
              Contains("modules_to_save"));
}

TEST(CommandLineTest, SwiftDividesAModelAmongTheGpusOfOneProcess) {
  const std::string command = "swift sft --model Qwen/Qwen2.5-7B --max_length 512";
  EXPECT_THAT(unread(read("CUDA_VISIBLE_DEVICES=0,1 " + command)),
              Contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_THAT(unread(read("CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 " + command)), IsEmpty());
}

TEST(CommandLineTest, SwiftsImagesHaveThePixelsOfTheEnvironment) {
  const MergedJob job =
      read("MAX_PIXELS=1003520 swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --max_length 4096");
  EXPECT_EQ(value(job, "training.image_size"), "1001");
}

TEST(CommandLineTest, SwiftsEmbeddingsLeaveTheVerdictOpen) {
  const std::string command = "swift sft --model Qwen/Qwen3-8B --max_length 512 --task_type ";
  EXPECT_THAT(unread(read(command + "embedding")), Contains("task_type"));
  const MergedJob classes = read(command + "seq_cls");
  EXPECT_THAT(unread(classes), IsEmpty());
  EXPECT_THAT(classes.not_modelled, Contains(HasSubstr("task_type seq_cls")));
}

// The backslash of a line is not its last character, or a comment stands between.
TEST(CommandLineTest, FlagsThatTheShellDoesNotPassAreNamed) {
  for (const char* end : {"\\  # once", "", "\\\n  # --bf16 \\"}) {
    const MergedJob job =
        read(std::string("swift sft --model Qwen/Qwen2.5-7B --max_length 512 ") + end +
             "\n  --per_device_train_batch_size 4 \\\n  --logging_steps 5\n");
    EXPECT_THAT(unread(job), ElementsAre("per_device_train_batch_size")) << end;
    EXPECT_EQ(value(job, "training.batch_size"), "1");
  }
}

// The sections of kohya's --config_file say flags; the datasets' file wins over them.
TEST(CommandLineTest, ReadsKohyasFiles) {
  const TemporaryDirectory folder;
  const std::string config = (folder.path() / "config.toml").string();
  const std::string datasets = (folder.path() / "datasets.toml").string();
  std::ofstream(config)
      << "[sdxl_arguments]\ncache_text_encoder_outputs = true\n"
         "[model]\npretrained_model_name_or_path = \"/x/sd_xl_base.safetensors\"\n"
         "[network]\nnetwork_module = \"networks.lora\"\nnetwork_dim = 32\n"
         "[training]\nresolution = \"1024,768\"\ntrain_batch_size = 2\n"
         "mixed_precision = \"bf16\"\ngradient_checkpointing = true\n"
         "optimizer_type = \"AdamW8bit\"\nsave_model_as = \"safetensors\"\n";
  std::ofstream(datasets) << "[general]\nbatch_size = 1\n[[datasets]]\nresolution = 512\n"
                             "batch_size = 4\n[[datasets]]\nresolution = [640, 640]\n";
  const MergedJob alone = merge_files(read_source(config));
  EXPECT_EQ(value(alone, "model.preset"), "sdxl");
  EXPECT_EQ(value(alone, "training.batch_size"), "2");
  EXPECT_EQ(value_at(alone.document, "training.image_size")->as_ints(1),
            (std::vector<std::int64_t>{768, 1024}));
  EXPECT_EQ(value(alone, "training.precision"), "bf16") << "the frozen weights";
  EXPECT_EQ(value(alone, "training.autocast"), "bf16");
  EXPECT_EQ(value(alone, "training.optimizer"), "adamw-8bit");
  EXPECT_EQ(value(alone, "training.lora.rank"), "32");
  EXPECT_THAT(unread(alone), ElementsAre("pretrained_model_name_or_path"));
  const MergedJob job = read("accelerate launch sdxl_train_network.py --config_file " + config +
                             " --network_dim 8 --dataset_config " + datasets);
  EXPECT_EQ(value(job, "training.lora.rank"), "8");
  EXPECT_EQ(value(job, "training.batch_size"), "4");
  EXPECT_EQ(value_at(job.document, "training.image_size")->as_ints(1),
            (std::vector<std::int64_t>{640, 640}));
  EXPECT_THAT(unread(read("python train_network.py --pretrained_model_name_or_path a.safetensors "
                          "--network_module networks.lora --dataset_config nowhere.toml")),
              Contains("dataset_config"));
}

TEST(CommandLineTest, AConfigurationThatIsNotHereLeavesTheVerdictOpen) {
  const std::string command = "python train.py --model gpt2 --batch_size 4 --seq_len 128 ";
  EXPECT_THAT(unread(read(command + "--config nowhere.yaml")), Contains("config"));
  EXPECT_THAT(unread(read(command + "--config-name sft")), Contains("config_name"));
}

TEST(CommandLineTest, GpusThatAccelerateCountsItselfAreSaid) {
  const std::string command =
      " train.py --model_name_or_path gpt2 --per_device_train_batch_size 1 --max_length 128";
  EXPECT_THAT(read("accelerate launch --multi_gpu" + command).assumptions,
              Contains(HasSubstr("every GPU it finds")));
  EXPECT_THAT(read("accelerate launch --multi_gpu --num_processes 2" + command).assumptions,
              Not(Contains(HasSubstr("every GPU it finds"))));
}

TEST(CommandLineTest, ATaskThatEvaluatesIsNoTraining) {
  EXPECT_THROW(read("python main.py --task MSDP-EVAL-F1 --num_layers 24 --hidden_size 1024 "
                    "--num_attention_heads 16 --micro_batch_size 4 --seq_length 2048"),
               Error);
}

TEST(CommandLineTest, FlagsBelowABareScriptAreItsOwn) {
  const MergedJob job = read(
      "accelerate launch --num_processes 2 train.py\n  --model_name_or_path gpt2\n"
      "  --per_device_train_batch_size 3\n  --max_length 128\n");
  EXPECT_EQ(value(job, "model.preset"), "gpt2");
  EXPECT_EQ(value(job, "training.batch_size"), "3");
  EXPECT_EQ(value(job, "parallel.num_gpus"), "2");
  EXPECT_THAT(unread(job), IsEmpty());
  EXPECT_THAT(job.assumptions, Contains(HasSubstr("no backslash continues it")));
}

TEST(CommandLineTest, ExampleScriptsHaveLengthsOfTheirOwn) {
  const std::string rest = " --model_name_or_path bert-base-cased --output_dir out --do_train";
  const MergedJob job = read("python examples/pytorch/text-classification/run_glue.py" + rest);
  EXPECT_EQ(value(job, "training.sequence_length"), "128");
  EXPECT_THAT(job.assumptions, Contains(HasSubstr("128 tokens that transformers' run_glue.py")));
  EXPECT_THAT(job.assumptions, Contains(HasSubstr("the library's default of 8")));
  EXPECT_EQ(value(read("python run_qa.py --max_seq_length 256" + rest), "training.sequence_length"),
            "256");
}

TEST(CommandLineTest, TrlStartsItsProcessesItself) {
  const std::string command =
      "trl sft --model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size 1 ";
  EXPECT_EQ(value(read(command + "--num_processes 4"), "parallel.num_gpus"), "4");
  const MergedJob packaged = read(command + "--accelerate_config zero2 --num_processes 2");
  EXPECT_EQ(value(packaged, "parallel.num_gpus"), "2");
  EXPECT_EQ(value(packaged, "parallel.zero_stage"), "2");
  EXPECT_THAT(unread(packaged), IsEmpty());
  EXPECT_EQ(value(read(command + "--accelerate_config fsdp2"), "parallel.num_gpus"), "8");
  EXPECT_THAT(unread(read(command + "--accelerate_config nowhere.yaml")),
              Contains("accelerate_config"));
}

TEST(CommandLineTest, RefusesJax) {
  EXPECT_THROW(read("python train_text_to_image_flax.py --pretrained_model_name_or_path a/b"),
               Error);
}

TEST(CommandLineTest, ANameThatSaysFewBitsIsCountedOrLeavesTheVerdictOpen) {
  const auto of_name = [](const std::string& name) {
    JobInput input;
    input.files = read(
        "trl sft --use_peft --max_length 512 --per_device_train_batch_size 1 "
        "--model_name_or_path " +
        name);
    input.document = input.files.document;
    complete(input);
    return input;
  };
  EXPECT_EQ(of_name("TechxGenus/Meta-Llama-3-8B-Instruct-AWQ")
                .document.at("training")
                .at("quantization")
                .at("method")
                .as_string(),
            "awq");
  const std::string odd = "ISTA-DASLab/Meta-Llama-3-8B-Instruct-AQLM-2Bit-1x16";
  EXPECT_THAT(unread(of_name(odd).files), Contains(odd));
}

TEST(CommandLineTest, ABatchThatNothingSaysLeavesTheVerdictOpen) {
  for (const char* command :
       {"torchrun --nproc_per_node 4 finetune.py --plugin hybrid_parallel --model_type gpt2",
        "python train_qlora_hf.py --model_name_or_path gpt2 --dataset_name_or_path alpaca"})
    EXPECT_THAT(unread(read(command)), Contains("batch_size")) << command;
  for (const char* command :
       {"python train.py --model gpt2 --bs 4",
        "python train.py --model_name_or_path gpt2 --num_train_epochs 1 --output_dir x",
        "trl sft --model_name_or_path gpt2"})
    EXPECT_THAT(unread(read(command)), Not(Contains("batch_size"))) << command;
}

TEST(CommandLineTest, TheTextTowerOfClipLeavesTheVerdictOpen) {
  const std::string flags = " --model ViT-B-32 --batch-size 256 --epochs 32 --precision amp_bf16";
  const MergedJob clip = read("python -m open_clip_train.main" + flags);
  EXPECT_THAT(unread(clip), Contains("model"));
  EXPECT_EQ(value(clip, "training.precision"), "amp-bf16");
  EXPECT_THAT(unread(read("python train.py" + flags)), IsEmpty());
}

TEST(CommandLineTest, ArgumentsThatTheShellDoesNotKnowAreJudgedByTheirName) {
  const std::string command =
      "python train.py --model gpt2 --batch_size 2 --max_length 64 --lr 1e-4 ";
  EXPECT_EQ(read(command + "$PRECISION_ARGS").unread.back().concerns, "precision");
  EXPECT_EQ(read(command + "$EXTRA_ARGS").unread.back().concerns, "");
}

TEST(CommandLineTest, ARankIsNoHarmlessNumber) {
  const std::string command = "python train.py --model gpt2 --batch_size 2 --max_length 64 ";
  EXPECT_THAT(unread(read(command + "--rank 16")), Contains("rank"));
  for (const UnreadKey& key : read(command + "--rank 0").unread) EXPECT_EQ(key.concerns, "");
}

TEST(CommandLineTest, VerlDividesAMicroBatchThatIsOfAllGpus) {
  const auto batch = [](const std::string& flags) {
    JobInput input;
    input.files = read(
        "torchrun --standalone --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer "
        "model.partial_pretrain=Qwen/Qwen2.5-0.5B " +
        flags);
    input.document = input.files.document;
    complete(input);
    return input.document.at("training");
  };
  EXPECT_EQ(batch("data.micro_batch_size=32").at("batch_size").as_int(), 4);
  EXPECT_EQ(batch("data.micro_batch_size_per_gpu=32").at("batch_size").as_int(), 32);
  EXPECT_EQ(batch("data.micro_batch_size=32").at("sequence_length").as_int(), 1024);
}

}  // namespace
}  // namespace memfathom
