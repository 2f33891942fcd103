// OpenRLHF's and verl's commands.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>

#include "estimator/command_line/reading.h"
#include "estimator/readers/formats.h"
#include "estimator/readers/gpu_count.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;

std::string text_of(const CommandReading& reading, std::initializer_list<std::string_view> keys) {
  const Node* value = first_flag(reading, keys);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

bool is_any(const CommandReading& reading, std::initializer_list<std::string_view> keys) {
  bool is = false;
  for (const std::string_view key : keys) is = is_true_at(reading.flags.tree, key) || is;
  return is;
}

void set_count(CommandReading& reading, std::string_view job,
               std::initializer_list<std::string_view> keys) {
  const Node* value = first_flag(reading, keys);
  if (value != nullptr && value->is_int())
    reading.parsed.set(job, Node::integer(value->as_int(1, kMaxCount)));
}

// Prompt and answer together are one sample of a training step.
bool set_prompt_and_answer(CommandReading& reading, std::initializer_list<std::string_view> prompt,
                           std::initializer_list<std::string_view> answer) {
  const Node* first = first_flag(reading, prompt);
  const Node* second = first_flag(reading, answer);
  if (first == nullptr || second == nullptr || !first->is_int() || !second->is_int()) return false;
  reading.parsed.set("training.sequence_length",
                     Node::integer(first->as_int(1, kMaxCount) + second->as_int(1, kMaxCount)));
  return true;
}

void leave_out_rollouts(CommandReading& reading) {
  for (const char* section : {"actor_rollout_ref.rollout", "actor_rollout_ref.ref", "critic", "ref",
                              "reward_model", "reward", "rollout", "vllm"})
    reading.parsed.named_sections.emplace_back(section);
  reading.leave_open(
      "rollout", "memory",
      fmt::format("{}: answers that are generated in training, the reference, the critic and the "
                  "reward model; the actor's training step over prompts and answers is counted",
                  reading.file));
}

void read_openrlhf(CommandReading& reading) {
  ParsedFile& parsed = reading.parsed;
  parsed.base_model = text_of(reading, {"pretrain", "model.model_name_or_path",
                                        "actor.model_name_or_path", "actor.model_path"});
  set_count(reading, "training.batch_size", {"micro_train_batch_size", "train.micro_batch_size"});
  if (!set_prompt_and_answer(reading, {"prompt_max_len", "data.prompt_max_len"},
                             {"generate_max_len", "rollout.generate_max_len"}))
    set_count(reading, "training.sequence_length", {"max_len", "data.max_len"});
  const std::string& program = reading.launch.program;
  const bool adapters = first_flag(reading, {"lora_rank", "ds.lora.rank"}) != nullptr;
  if (program.find("dpo") != std::string::npos) {
    parsed.set("training.preference.method", Node::string("dpo"));
    parsed.set("training.preference.reference",
               Node::string(adapters ? "disabled-adapter" : "model"));
  } else if (program.find("ppo") != std::string::npos) {
    leave_out_rollouts(reading);
  } else if (program.find("_rm") != std::string::npos) {
    reading.train_reward_model();
  }
  const Node* stage = first_flag(reading, {"zero_stage", "ds.zero_stage"});
  parsed.set("parallel.zero_stage",
             Node::integer(stage != nullptr && stage->is_int() ? stage->as_int(0, 3) : 2));
  const Node* type = first_flag(reading, {"param_dtype", "ds.param_dtype"});
  const std::string name = type != nullptr ? word_of(*type) : "";
  const bool has_type_flag = first_flag(reading, {"bf16"}) != nullptr;
  parsed.set("training.precision",
             Node::string(name == "fp16"                                ? "fp16"
                          : has_type_flag && !is_any(reading, {"bf16"}) ? "fp32"
                                                                        : "bf16"));
  if (is_any(reading, {"gradient_checkpointing", "model.gradient_checkpointing_enable",
                       "actor.gradient_checkpointing_enable"}))
    parsed.set("training.gradient_checkpointing", Node::string("full"));
  if (is_any(reading, {"flash_attn"})) parsed.set("training.attention", Node::string("flash"));
  if (const std::string attention =
          text_of(reading, {"attn_implementation", "ds.attn_implementation"});
      !attention.empty())
    set_attention(attention, parsed);
  if (adapters) {
    set_count(reading, "training.lora.rank", {"lora_rank", "ds.lora.rank"});
    parsed.set("training.lora.targets", Node::string("all-linear"));
  }
  if (is_any(reading, {"load_in_4bit", "ds.load_in_4bit"}))
    parsed.set("training.quantization", Node::string("nf4"));
  if (is_any(reading, {"adam_offload", "ds.adam_offload"}))
    parsed.set("parallel.offload.optimizer", Node::string("cpu"));
  if (is_any(reading, {"packing_samples", "ds.packing_samples", "train.packing_samples"}))
    parsed.set("training.lengths", Node::string("fixed"));
  const Node* nodes = first_flag(reading, {"actor_num_nodes", "actor.num_nodes"});
  const Node* gpus = first_flag(reading, {"actor_num_gpus_per_node", "actor.num_gpus_per_node"});
  if (gpus != nullptr && gpus->is_int())
    parsed.set("parallel.num_gpus", Node::integer(gpus_on_nodes(*gpus, nodes, 1 << 10)));
}

void set_verl_gpus(CommandReading& reading) {
  const Node* gpus = first_flag(reading, {"trainer.n_gpus_per_node"});
  const Node* nodes = first_flag(reading, {"trainer.nnodes"});
  if (gpus == nullptr || !gpus->is_int()) return;
  reading.parsed.set("parallel.num_gpus", Node::integer(gpus_on_nodes(*gpus, nodes, 1 << 10)));
}

void set_verl_engine(CommandReading& reading) {
  ParsedFile& parsed = reading.parsed;
  const std::string strategy =
      text_of(reading, {"actor_rollout_ref.actor.strategy", "model.strategy", "engine"});
  if (strategy == "megatron" || reading.flag("actor_rollout_ref.actor.megatron") != nullptr) {
    set_count(reading, "parallel.tensor",
              {"actor_rollout_ref.actor.megatron.tensor_model_parallel_size"});
    set_count(reading, "parallel.pipeline",
              {"actor_rollout_ref.actor.megatron.pipeline_model_parallel_size"});
    parsed.set("training.precision", Node::string("bf16"));
    parsed.set("parallel.zero_stage", Node::integer(1));
    return;
  }
  // FSDP over fp32 weights, with bf16 in the passes.
  parsed.set("parallel.fsdp", Node::string("full"));
  parsed.set("training.precision", Node::string("amp-bf16"));
  if (is_any(reading, {"actor_rollout_ref.actor.fsdp_config.param_offload",
                       "model.fsdp_config.cpu_offload", "model.fsdp_config.offload_params"}))
    parsed.set("parallel.offload.parameters", Node::string("cpu"));
  if (is_any(reading, {"actor_rollout_ref.actor.fsdp_config.optimizer_offload"}))
    parsed.set("parallel.offload.optimizer", Node::string("cpu"));
}

void read_verl(CommandReading& reading) {
  ParsedFile& parsed = reading.parsed;
  parsed.base_model =
      text_of(reading, {"actor_rollout_ref.model.path", "model.partial_pretrain", "model.path"});
  const bool trains_on_answers = reading.flag("actor_rollout_ref") != nullptr;
  if (trains_on_answers) {
    leave_out_rollouts(reading);
    set_prompt_and_answer(reading, {"data.max_prompt_length"}, {"data.max_response_length"});
    set_count(reading, "training.batch_size",
              {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
               "actor_rollout_ref.actor.ppo_micro_batch_size"});
    // Dynamic batches are as many samples as fit into a number of tokens.
    if (is_any(reading, {"actor_rollout_ref.actor.use_dynamic_bsz"})) {
      const Node* tokens =
          first_flag(reading, {"actor_rollout_ref.actor.ppo_max_token_len_per_gpu"});
      if (tokens != nullptr && tokens->is_int()) {
        parsed.set("training.batch_size", Node::integer(1));
        parsed.set("training.sequence_length", Node::integer(tokens->as_int(1, kMaxCount)));
        reading.assume(
            fmt::format("{}: dynamic batches are counted as one sequence of their {} "
                        "tokens, whose attention is that of a single sample",
                        reading.file, tokens->as_int()));
      }
    }
    if (const Node* share =
            first_flag(reading, {"actor_rollout_ref.rollout.gpu_memory_utilization"}))
      reading.leave_open(
          "actor_rollout_ref.rollout.gpu_memory_utilization", "memory",
          fmt::format("{}: the inference engine on the same GPU, which takes {} of it "
                      "while it is awake",
                      reading.file, share->shown()));
  } else {
    set_count(reading, "training.batch_size",
              {"data.micro_batch_size_per_gpu", "data.micro_batch_size"});
    set_count(reading, "training.sequence_length", {"data.max_length"});
    if (reading.flag("data.max_length") == nullptr) {
      parsed.set("training.sequence_length", Node::integer(1024));
      reading.assume(fmt::format("{}: no data.max_length: verl's default of 1024", reading.file));
    }
  }
  const Node* checkpointing =
      first_flag(reading, {"actor_rollout_ref.model.enable_gradient_checkpointing",
                           "model.enable_gradient_checkpointing"});
  const bool is_off =
      checkpointing != nullptr && checkpointing->is_bool() && !checkpointing->as_bool();
  parsed.set("training.gradient_checkpointing", Node::string(is_off ? "none" : "full"));
  if (is_any(reading, {"actor_rollout_ref.model.use_remove_padding", "use_remove_padding"}))
    parsed.set("training.attention", Node::string("flash"));
  const Node* rank = first_flag(reading, {"actor_rollout_ref.model.lora_rank", "model.lora_rank"});
  if (rank != nullptr && rank->is_int() && rank->as_int() > 0) {
    parsed.set("training.lora.rank", Node::integer(rank->as_int(1, 1 << 20)));
    parsed.set("training.lora.targets", Node::string("all-linear"));
  }
  set_verl_gpus(reading);
  set_verl_engine(reading);
  static constexpr auto kNotModelled = std::to_array<std::string_view>(
      {"actor_rollout_ref.actor.ulysses_sequence_parallel_size", "ulysses_sequence_parallel_size",
       "actor_rollout_ref.actor.use_torch_compile", "actor_rollout_ref.actor.fsdp_config.fsdp_size",
       "actor_rollout_ref.model.use_fused_kernels", "actor_rollout_ref.actor.megatron"});
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace

void read_openrlhf_command(CommandReading& reading) { read_known_flags(read_openrlhf, reading); }

void read_verl_command(CommandReading& reading) { read_known_flags(read_verl, reading); }

}  // namespace memfathom
