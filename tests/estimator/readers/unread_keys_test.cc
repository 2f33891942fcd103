// Every key of a foreign file is read, known to be harmless, or named.
#include "estimator/readers/unread_keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "estimator/readers/merge.h"
#include "estimator/session/job_input.h"
#include "tests/estimator/readers/parsed_value.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

struct Sample {
  const char* name;
  FileFormat format;
  const char* yaml;  // every key is read or harmless
  const char* typo;  // a key of the format, misspelled
  const char* nearest;
};

// Files as their projects' examples have them.
const Sample kSamples[] = {
    {"axolotl", FileFormat::kAxolotl,
     "{base_model: NousResearch/Llama-2-7b-hf, model_type: LlamaForCausalLM, tokenizer_type: "
     "LlamaTokenizer, load_in_8bit: true, load_in_4bit: false, strict: false, datasets: [{path: "
     "a/b, "
     "type: alpaca}], dataset_prepared_path: x, val_set_size: 0.05, output_dir: ./out, "
     "sequence_len: "
     "4096, sample_packing: true, pad_to_sequence_len: true, adapter: lora, lora_model_dir: null, "
     "lora_r: 32, lora_alpha: 16, lora_dropout: 0.05, lora_target_linear: true, wandb_project: x, "
     "wandb_entity: y, wandb_watch: z, wandb_name: n, wandb_log_model: m, "
     "gradient_accumulation_steps: 4, micro_batch_size: 2, num_epochs: 4, optimizer: "
     "adamw_bnb_8bit, lr_scheduler: cosine, learning_rate: 0.0002, bf16: auto, tf32: false, "
     "gradient_checkpointing: true, resume_from_checkpoint: a, logging_steps: 1, flash_attention: "
     "true, warmup_steps: 10, evals_per_epoch: 4, saves_per_epoch: 1, weight_decay: 0.0, "
     "special_tokens: {pad_token: x}, fsdp: [full_shard], fsdp_config: {fsdp_state_dict_type: "
     "FULL_STATE_DICT, fsdp_offload_params: false}}",
     "gradient_checkpoint", "gradient_checkpointing"},
    {"LLaMA-Factory", FileFormat::kLlamaFactory,
     "{model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct, trust_remote_code: true, stage: "
     "sft, "
     "do_train: true, finetuning_type: lora, lora_rank: 8, lora_alpha: 16, lora_target: all, "
     "dataset: identity, template: llama3, cutoff_len: 2048, max_samples: 1000, "
     "preprocessing_num_workers: 16, dataloader_num_workers: 4, output_dir: x, logging_steps: 10, "
     "save_steps: 500, plot_loss: true, overwrite_output_dir: true, save_only_model: false, "
     "report_to: none, per_device_train_batch_size: 1, gradient_accumulation_steps: 8, "
     "learning_rate: 1.0e-4, num_train_epochs: 3.0, lr_scheduler_type: cosine, warmup_ratio: 0.1, "
     "bf16: true, ddp_timeout: 180000000, resume_from_checkpoint: null}",
     "lorra_rank", "lora_rank"},
    {"torchtune", FileFormat::kTorchtune,
     "{output_dir: /tmp/x, model: {_component_: torchtune.models.llama3_1.lora_llama3_1_8b, "
     "lora_attn_modules: [q_proj, v_proj], apply_lora_to_mlp: true, apply_lora_to_output: false, "
     "lora_rank: 8, lora_alpha: 16, lora_dropout: 0.0}, tokenizer: {_component_: t.m.tokenizer, "
     "path: /tmp/t, max_seq_len: 2048}, checkpointer: {_component_: c, checkpoint_dir: /nowhere, "
     "checkpoint_files: [a], model_type: LLAMA3}, dataset: {_component_: d, packed: false}, seed: "
     "1, "
     "shuffle: true, batch_size: 2, optimizer: {_component_: torch.optim.AdamW, fused: true, "
     "weight_decay: 0.01, lr: 3e-4}, lr_scheduler: {_component_: s, num_warmup_steps: 100}, loss: "
     "{_component_: torchtune.modules.loss.CEWithChunkedOutputLoss}, epochs: 1, "
     "max_steps_per_epoch: 10, gradient_accumulation_steps: 8, clip_grad_norm: null, compile: "
     "false, metric_logger: {_component_: m, log_dir: x}, log_every_n_steps: 1, "
     "log_peak_memory_stats: true, device: cuda, dtype: bf16, enable_activation_checkpointing: "
     "true, "
     "enable_activation_offloading: false, profiler: {_component_: p, enabled: false}, "
     "save_adapter_weights_only: false, resume_from_checkpoint: false}",
     "enable_activation_checkpoint", "enable_activation_checkpointing"},
    {"TrainingArguments", FileFormat::kTrainingArguments,
     "{output_dir: x, overwrite_output_dir: true, do_train: true, per_device_train_batch_size: 2, "
     "gradient_accumulation_steps: 4, learning_rate: 5e-5, weight_decay: 0.0, adam_beta1: 0.9, "
     "adam_beta2: 0.999, adam_epsilon: 1e-8, max_grad_norm: 1.0, num_train_epochs: 3, max_steps: "
     "-1, "
     "lr_scheduler_type: linear, warmup_ratio: 0.0, log_level: passive, logging_dir: y, "
     "logging_strategy: steps, logging_steps: 500, save_strategy: steps, save_steps: 500, "
     "save_total_limit: 2, seed: 42, bf16: true, fp16: false, tf32: null, local_rank: 0, "
     "dataloader_num_workers: 0, dataloader_pin_memory: true, run_name: x, remove_unused_columns: "
     "true, label_smoothing_factor: 0.0, optim: adamw_torch, group_by_length: false, report_to: "
     "[wandb], push_to_hub: false, hub_model_id: null, gradient_checkpointing: true, "
     "gradient_checkpointing_kwargs: {use_reentrant: false}, ddp_timeout: 1800, torch_compile: "
     "false, eval_strategy: steps, eval_steps: 100, per_device_eval_batch_size: 8, deepspeed: "
     "{zero_optimization: {stage: 2}}}",
     "gradient_checkpoint", "gradient_checkpointing"},
    {"TRL", FileFormat::kTrainingArguments,
     "{model_name_or_path: mistralai/Mistral-7B-v0.1, model_revision: main, torch_dtype: bfloat16, "
     "attn_implementation: flash_attention_2, use_peft: true, load_in_4bit: true, lora_r: 16, "
     "lora_alpha: 16, lora_dropout: 0.05, lora_target_modules: [q_proj, v_proj], dataset_name: x, "
     "dataset_splits: [a], preprocessing_num_workers: 12, bf16: true, beta: 0.01, do_eval: true, "
     "eval_strategy: steps, eval_steps: 100, gradient_accumulation_steps: 2, "
     "gradient_checkpointing: true, hub_model_id: x, learning_rate: 5.0e-7, log_level: info, "
     "logging_steps: 10, lr_scheduler_type: cosine, max_length: 1024, max_prompt_length: 512, "
     "num_train_epochs: 1, optim: adamw_torch, output_dir: x, per_device_train_batch_size: 8, "
     "per_device_eval_batch_size: 8, push_to_hub: true, save_strategy: steps, save_steps: 100, "
     "save_total_limit: 1, seed: 42, warmup_ratio: 0.1}",
     "max_lenght", "max_length"},
    {"DeepSpeed", FileFormat::kDeepSpeed,
     "{fp16: {enabled: auto, loss_scale: 0, loss_scale_window: 1000, initial_scale_power: 16, "
     "hysteresis: 2, min_loss_scale: 1}, bf16: {enabled: auto}, optimizer: {type: AdamW, params: "
     "{lr: auto, betas: auto, eps: auto, weight_decay: auto}}, scheduler: {type: WarmupLR, params: "
     "{warmup_min_lr: auto}}, zero_optimization: {stage: 3, offload_optimizer: {device: cpu, "
     "pin_memory: true}, offload_param: {device: cpu, pin_memory: true}, overlap_comm: true, "
     "contiguous_gradients: true, sub_group_size: 1.0e9, reduce_bucket_size: auto, "
     "stage3_prefetch_bucket_size: auto, stage3_param_persistence_threshold: auto, "
     "stage3_max_live_parameters: 1.0e9, stage3_max_reuse_distance: 1.0e9, "
     "stage3_gather_16bit_weights_on_model_save: true}, gradient_accumulation_steps: auto, "
     "gradient_clipping: auto, steps_per_print: 2000, train_batch_size: auto, "
     "train_micro_batch_size_per_gpu: auto, wall_clock_breakdown: false}",
     "train_micro_batch_size_per_gpus", "train_micro_batch_size_per_gpu"},
    {"accelerate", FileFormat::kAccelerate,
     "{compute_environment: LOCAL_MACHINE, debug: false, distributed_type: FSDP, downcast_bf16: "
     "'no', enable_cpu_affinity: false, fsdp_config: {fsdp_activation_checkpointing: false, "
     "fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP, fsdp_backward_prefetch: BACKWARD_PRE, "
     "fsdp_cpu_ram_efficient_loading: true, fsdp_forward_prefetch: true, fsdp_offload_params: "
     "false, fsdp_sharding_strategy: FULL_SHARD, fsdp_state_dict_type: FULL_STATE_DICT, "
     "fsdp_sync_module_states: true, fsdp_use_orig_params: true}, machine_rank: 0, "
     "main_training_function: main, mixed_precision: bf16, num_machines: 1, num_processes: 8, "
     "rdzv_backend: static, same_network: true, tpu_env: [], tpu_use_cluster: false, tpu_use_sudo: "
     "false, use_cpu: false}",
     "gradient_accumulation_step", "gradient_accumulation_steps"},
    {"training YAML", FileFormat::kTrainYaml,
     "{model: {name: fno, hidden_dim: 256, num_layers: 10, freeze_encoder: false}, data: {height: "
     "128, width: 128, num_workers: 4}, train: {batch_size: 8, accumulation_steps: 1, use_amp: "
     "false, lr: 1e-3, epochs: 100, optimizer: {name: adamw, lr: 1e-3, weight_decay: 1e-4}, "
     "gpu_memory: 24}, seed: 1, output_dir: x, wandb: {mode: x}}",
     "gradient_checkpoint", "gradient_checkpointing"},
    {"adapter_config.json", FileFormat::kAdapter,
     "{peft_type: LORA, task_type: CAUSAL_LM, r: 16, lora_alpha: 32, lora_dropout: 0.1, bias: "
     "none, "
     "target_modules: [q_proj], base_model_name_or_path: gpt2, fan_in_fan_out: false, "
     "inference_mode: true, init_lora_weights: true, modules_to_save: null}",
     "lora_droput", "lora_dropout"},
};

ParsedFile parse(const Sample& sample, const std::string& more) {
  std::string yaml = sample.yaml;
  if (!more.empty()) yaml.insert(1, more + ", ");
  return read_tree(parse_yaml(yaml, "x.yaml"), sample.format);
}

std::string names(const ParsedFile& parsed) { return names_of(parsed.unread); }

class EveryFormat : public testing::TestWithParam<Sample> {};

TEST_P(EveryFormat, AnOrdinaryFileHasNoUnreadKey) {
  EXPECT_EQ(detect_format(parse_yaml(GetParam().yaml, "x.yaml")), GetParam().format);
  EXPECT_EQ(names(parse(GetParam(), "")), "");
}

TEST_P(EveryFormat, AnUnknownKeyIsNamedWithWhatItConcerns) {
  const ParsedFile parsed = parse(GetParam(),
                                  "wobble: 3, hidden_wobble_size: 512, wobble_type: bfloat16, "
                                  "section: {inner: {num_heads: 8}}");
  ASSERT_EQ(parsed.unread.size(), 4u) << names(parsed);
  EXPECT_EQ(parsed.unread[0].key, "wobble");
  EXPECT_EQ(parsed.unread[0].concerns, "");
  EXPECT_EQ(parsed.unread[1].concerns, "model");
  EXPECT_EQ(parsed.unread[2].concerns, "precision") << "by its value";
  EXPECT_EQ(parsed.unread[3].key, "section.inner.num_heads");
  EXPECT_EQ(parsed.unread[3].concerns, "model");
}

TEST_P(EveryFormat, ANearMissIsNamedWithTheKnownKey) {
  Sample sample = GetParam();
  std::string yaml = sample.yaml;  // without the right key, which would have been read
  const std::size_t at = yaml.find(std::string(sample.nearest) + ": ");
  if (at != std::string::npos) yaml.insert(at, "note_");
  const std::string more = fmt::format("{}: 8, ", sample.typo);
  yaml.insert(1, more);
  const ParsedFile parsed = read_tree(parse_yaml(yaml, "x.yaml"), sample.format);
  ASSERT_FALSE(parsed.unread.empty());
  EXPECT_EQ(parsed.unread[0].key, sample.typo);
  EXPECT_EQ(parsed.unread[0].nearest, sample.nearest);
  EXPECT_NE(parsed.unread[0].concerns, "");
}

// Each key of the file, with a letter more: it is named, or was harmless before.
TEST_P(EveryFormat, EveryKeyThatIsReadIsNamedWhereItIsMisspelled) {
  const Node tree = parse_yaml(GetParam().yaml, "x.yaml");
  for (const Node& entry : tree.entries()) {
    if (entry.is_null() || entry.key() == "peft_type" || entry.key() == "r") continue;
    if (entry.is_list() && entry.items().empty()) continue;
    Node changed = tree;
    changed.erase(entry.key());
    const std::string typo = "zz" + std::string(entry.key());
    changed.set(typo, entry);
    const ParsedFile parsed = read_tree(changed, GetParam().format);
    const bool is_named =
        names(parsed).find(typo) != std::string::npos || harmless_reason(GetParam().format, typo);
    EXPECT_TRUE(is_named) << typo;
  }
}

INSTANTIATE_TEST_SUITE_P(Readers, EveryFormat, testing::ValuesIn(kSamples),
                         [](const testing::TestParamInfo<Sample>& sample) {
                           std::string name = sample.param.name;
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

TEST(UnreadKeysTest, SettingsThatAreOffConcernNothing) {
  EXPECT_EQ(concern_of("hidden_size", Node::integer(8)), "model");
  EXPECT_EQ(concern_of("load_in_2bit", Node::boolean(false)), "");
  EXPECT_EQ(concern_of("load_in_2bit", Node::boolean(true)), "precision");
  EXPECT_EQ(concern_of("arbitrary", Node::integer(8)), "");
  EXPECT_EQ(concern_of("style", Node::string("torch.bfloat16")), "precision");
  EXPECT_EQ(concern_of("style", Node::string("paged_adamw_8bit")), "optimizer");
}

TEST(UnreadKeysTest, EachFileHasASentence) {
  const std::vector<UnreadKey> keys{{"a.yml", "wobble", "", ""},
                                    {"b.yml", "colour", "", ""},
                                    {"a.yml", "hiden_dim", "model", "hidden_dim"}};
  EXPECT_THAT(unread_sentences(keys),
              testing::ElementsAre("a.yml: these keys were not read: hiden_dim (did you mean "
                                   "hidden_dim?), wobble; they may change the memory",
                                   "b.yml: these keys were not read: colour; no name among them is "
                                   "of a setting that changes the memory"));
}

TEST(UnreadKeysTest, ASectionThatIsNotModelledIsNamedAsAWhole) {
  const ParsedFile parsed = parse_config(
      "{distributed_type: FSDP, fp8_config: {backend: TE, amax_history_len: 16}, num_processes: "
      "2}");
  EXPECT_EQ(names(parsed), "");
  EXPECT_THAT(parsed.not_modelled, Contains(HasSubstr("fp8_config")));
}

TEST(UnreadKeysTest, KeysOfASectionAreNamedByTheirPathInTheFile) {
  std::vector<ParsedFile> files;
  read_with_sections(
      parse_yaml("{output_dir: x, deepspeed: {zero_optimization: {stage: 2, stages: 3}}}",
                 "x.yaml"),
      FileFormat::kTrainingArguments, files);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(names(files[0]), "");
  EXPECT_EQ(names(files[1]), "deepspeed.zero_optimization.stages");
}

TEST(UnreadKeysTest, AMisspelledKeyOfAConfigIsNamedAndOthersAreNot) {
  const TemporaryDirectory directory;
  const auto unread_of = [&](const char* heads) {
    const std::filesystem::path file = directory / "config.json";
    std::ofstream(file) << fmt::format(
        R"({{"model_type": "llama", "hidden_size": 64, "intermediate_size": 160,
            "num_hidden_layers": 2, "num_attention_heads": 4, "{}": 2, "vocab_size": 100,
            "transformers_version": "4.40.0", "bos_token_id": 1, "wobble": 3}})",
        heads);
    return names(read_path(file.string()).front());
  };
  EXPECT_EQ(unread_of("num_key_value_heads"), "");
  EXPECT_EQ(unread_of("num_key_value_head"),
            "num_key_value_head (did you mean num_key_value_heads?)");
}

JobInput input_of(const char* yaml) {
  const Node tree = parse_yaml(yaml, "x.yaml");
  JobInput input;
  input.files = merge_files({read_tree(tree, detect_format(tree))});
  input.document = input.files.document;
  complete(input);
  return input;
}

TEST(UnreadKeysTest, AKeyThatMayChangeTheMemoryLeavesTheVerdictUndecided) {
  const auto verdict_with = [](const char* yaml) {
    Estimate estimate;
    estimate.verdict.status = VerdictStatus::kFits;
    estimate.verdict.probability_fits = 0.99;
    input_of(yaml).annotate(estimate);
    return estimate;
  };
  const Estimate undecided = verdict_with(
      "{base_model: gpt2, micro_batch_size: 1, sequence_len: 64, some_quantization: int3}");
  EXPECT_EQ(undecided.verdict.status, VerdictStatus::kUndecided);
  EXPECT_FALSE(undecided.verdict.probability_fits.has_value());
  EXPECT_THAT(undecided.warnings, Contains(HasSubstr("some_quantization")));
  ASSERT_EQ(undecided.unread.size(), 1u);
  const Estimate decided =
      verdict_with("{base_model: gpt2, micro_batch_size: 1, sequence_len: 64, colour: blue}");
  EXPECT_EQ(decided.verdict.status, VerdictStatus::kFits);
  EXPECT_THAT(decided.warnings, Contains(HasSubstr("colour")));
}

TEST(UnreadKeysTest, AJobWithoutFilesHasNone) {
  const JobInput input = complete_job(
      parse_yaml("{model: {preset: gpt2}, training: {sequence_length: 8}}", "job.yaml"));
  EXPECT_TRUE(input.files.unread.empty());
}

TEST(UnreadKeysTest, AModelNamedByAFlagIsNotInDoubt) {
  const Node tree =
      parse_yaml("{model: {kind: strange, base_channels: 64}, batch_size: 2}", "x.yaml");
  JobInput input;
  input.files = merge_files({read_tree(tree, detect_format(tree))});
  input.document = input.files.document;
  input.document.assign("model.preset", Node::string("gpt2"));
  input.document.assign("training.sequence_length", Node::integer(8));
  EXPECT_NO_THROW(complete(input));
  Estimate estimate;
  estimate.verdict.status = VerdictStatus::kFits;
  input.annotate(estimate);
  EXPECT_EQ(estimate.verdict.status, VerdictStatus::kFits);
}

TEST(UnreadKeysTest, AModelWhoseOwnDescriptionWasNotReadIsRefused) {
  const auto refusal_of = [](const char* yaml) -> std::string {
    try {
      input_of(yaml);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal_of("{model: {name: fno, hidden_dim: 64, projection_channels: 128}, "
                         "batch_size: 2, resolution: 64}"),
              HasSubstr("these keys were not read: model.projection_channels;"));
  EXPECT_THAT(refusal_of("{model: {kind: unet, base_channels: 64}, batch_size: 2, resolution: 64}"),
              HasSubstr("model.base_channels"));
  EXPECT_THAT(refusal_of("{model_name: fno, hiden_dim: 256, num_layers: 4, batch_size: 2, "
                         "resolution: 64}"),
              HasSubstr("hiden_dim (did you mean hidden_dim?)"));
}

}  // namespace
}  // namespace memfathom
