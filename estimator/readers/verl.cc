// verl's configuration (hydra): the actor of reinforcement learning, or supervised training. FSDP
// keeps fp32 weights and computes in bf16.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "estimator/readers/formats.h"
#include "estimator/readers/gpu_count.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"},
    {"training.batch_size", "data.micro_batch_size_per_gpu"},
    {"training.sequence_length", "data.max_length"},
    {"training.gradient_checkpointing", "actor_rollout_ref.model.enable_gradient_checkpointing",
     FieldKind::kCheckpointing},
    {"training.gradient_checkpointing", "model.enable_gradient_checkpointing",
     FieldKind::kCheckpointing},
    {"parallel.offload.activations", "actor_rollout_ref.model.enable_activation_offload",
     FieldKind::kOffload},
    {"parallel.offload.parameters", "actor_rollout_ref.actor.fsdp_config.param_offload",
     FieldKind::kOffload},
    {"parallel.offload.optimizer", "actor_rollout_ref.actor.fsdp_config.optimizer_offload",
     FieldKind::kOffload},
    {"parallel.offload.parameters", "model.fsdp_config.offload_params", FieldKind::kOffload},
    {"training.fused_loss", "actor_rollout_ref.model.use_liger", FieldKind::kFlag},
    {"training.fused_loss", "model.use_liger", FieldKind::kFlag},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({
    "ulysses_sequence_parallel_size",
    "actor_rollout_ref.actor.ulysses_sequence_parallel_size",
    "actor_rollout_ref.actor.use_dynamic_bsz",
    "actor_rollout_ref.model.use_fused_kernels",
    "actor_rollout_ref.actor.fsdp_config.fsdp_size",
    "model.fsdp_config.fsdp_size",
});

// Weights that stay gathered between the passes.
void list_gathered_weights(ParsedFile& parsed) {
  for (const char* key : {"actor_rollout_ref.actor.fsdp_config.reshard_after_forward",
                          "model.fsdp_config.reshard_after_forward"}) {
    const Node* value = value_at(parsed.content, key);
    if (value != nullptr && !is_on(*value))
      leave_open(key, "sharding",
                 fmt::format("{}: {} is off; weights that stay gathered between forward and "
                             "backward are not counted",
                             parsed.file, key),
                 parsed);
  }
}

bool is_interpolation(const Node* value) {
  return value != nullptr && value->is_string() && value->as_string().starts_with("${");
}

void set_adapters(const std::string& section, ParsedFile& parsed) {
  const Node* rank = value_at(parsed.content, section + ".lora_rank");
  if (rank == nullptr || !rank->is_int() || rank->as_int() == 0) return;
  parsed.set("training.lora.rank", *rank);
  const Node* targets = value_at(parsed.content, section + ".target_modules");
  if (targets != nullptr && !is_interpolation(targets))
    parsed.set("training.lora.targets", lora_targets(*targets));
}

// Without "_per_gpu" it is of all GPUs: resolve_auto.cc divides it.
void set_shared_batch(ParsedFile& parsed) {
  const auto is_batch = [](const KeyChange& change) { return change.key == "training.batch_size"; };
  if (std::any_of(parsed.settings.begin(), parsed.settings.end(), is_batch)) return;
  for (const char* key :
       {"actor_rollout_ref.actor.ppo_micro_batch_size", "data.micro_batch_size"}) {
    const Node* whole = value_at(parsed.content, key);
    if (whole == nullptr || !whole->is_int()) continue;
    parsed.set("training.batch_size", Node::integer(whole->as_int(1, 1 << 30)));
    return;
  }
}

void set_gpus(ParsedFile& parsed) {
  const Node* per_node = value_at(parsed.content, "trainer.n_gpus_per_node");
  const Node* nodes = value_at(parsed.content, "trainer.nnodes");
  if (per_node == nullptr || !per_node->is_int()) return;
  parsed.set("parallel.num_gpus", Node::integer(gpus_on_nodes(*per_node, nodes, 1 << 16)));
  parsed.set("parallel.gpus_per_node", *per_node);
}

// Weights in bf16, or in fp32 under autocast.
void set_stored_type(const std::string& key, ParsedFile& parsed) {
  const std::string stored = text_at(parsed.content, key, "fp32");
  parsed.set("training.precision",
             Node::string(stored == "bf16" || stored == "bfloat16" ? "bf16" : "amp-bf16"));
}

// One training step of the actor; everything else shares the GPU with it.
void set_actor(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const Node* prompt = value_at(tree, "data.max_prompt_length");
  const Node* answer = value_at(tree, "data.max_response_length");
  if (prompt != nullptr && answer != nullptr && prompt->is_int() && answer->is_int())
    parsed.set("training.sequence_length",
               Node::integer(prompt->as_int(1, 1 << 30) + answer->as_int(1, 1 << 30)));
  set_adapters("actor_rollout_ref.model", parsed);
  parsed.base_model = text_at(tree, "actor_rollout_ref.model.path");
  set_stored_type("actor_rollout_ref.actor.fsdp_config.model_dtype", parsed);
  for (const char* key : {"actor_rollout_ref.rollout", "critic", "reward_model", "reward"}) {
    const Node* section = value_at(tree, key);
    const Node* enabled = value_at(tree, std::string(key) + ".enable");
    if (section == nullptr || (enabled != nullptr && !is_on(*enabled))) continue;
    leave_open(key, "memory",
               fmt::format("{}: {} shares the GPUs with the actor, whose training step alone is "
                           "counted",
                           parsed.file, key),
               parsed);
  }
}

void set_supervised(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  set_adapters("model", parsed);
  parsed.base_model = text_at(tree, "model.partial_pretrain", text_at(tree, "model.path"));
  set_stored_type("model.fsdp_config.model_dtype", parsed);
  if (value_at(tree, "data.max_length") != nullptr) return;
  parsed.set("training.sequence_length", Node::integer(1024));
  parsed.assumptions.push_back(
      fmt::format("{}: no data.max_length: verl's default of 1024", parsed.file));
}

}  // namespace

std::span<const Field> verl_fields() { return kFields; }

bool is_verl(const Node& tree) {
  return value_at(tree, "actor_rollout_ref") != nullptr ||
         value_at(tree, "model.partial_pretrain") != nullptr;
}

void read_verl(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  read_fields(kFields, parsed);
  set_shared_batch(parsed);
  const bool learns_by_reward = value_at(tree, "actor_rollout_ref") != nullptr;
  learns_by_reward ? set_actor(parsed) : set_supervised(parsed);
  const std::string strategy = text_at(
      tree, learns_by_reward ? "actor_rollout_ref.actor.strategy" : "model.strategy", "fsdp");
  if (strategy.starts_with("fsdp")) {
    parsed.set("parallel.fsdp", Node::string("full"));
    parsed.set("parallel.fsdp_version", Node::integer(strategy == "fsdp2" ? 2 : 1));
  } else {
    leave_open(learns_by_reward ? "actor_rollout_ref.actor.strategy" : "model.strategy", "sharding",
               fmt::format("{}: strategy {} is not counted", parsed.file, strategy), parsed);
  }
  set_gpus(parsed);
  parsed.set("training.gradient_clipping", Node::boolean(true));
  list_gathered_weights(parsed);
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace memfathom
