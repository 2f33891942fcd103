// NeMo RL's configuration: a policy that FSDP 2 shards (dtensor), in supervised training, by
// preferences or by reward.
#include <fmt/format.h>

#include <array>
#include <string>

#include "estimator/readers/formats.h"
#include "estimator/readers/gpu_count.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "policy.train_micro_batch_size"},
    {"training.sequence_length", "policy.max_total_sequence_length"},
    {"training.optimizer", "policy.optimizer", FieldKind::kOptimizer},
    {"training.gradient_checkpointing", "policy.dtensor_cfg.activation_checkpointing",
     FieldKind::kCheckpointing},
    {"parallel.offload.parameters", "policy.dtensor_cfg.cpu_offload", FieldKind::kOffload},
    {"parallel.tensor", "policy.dtensor_cfg.tensor_parallel_size"},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({
    "policy.dtensor_cfg.context_parallel_size",
    "policy.dynamic_batching.enabled",
    "policy.dtensor_cfg.sequence_parallel",
    "policy.dtensor_cfg.dp_replicate_size",
    "policy.hf_config_overrides",
});

void set_adapters(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  if (!is_true_at(tree, "policy.dtensor_cfg.lora_cfg.enabled")) return;
  const Node* rank = value_at(tree, "policy.dtensor_cfg.lora_cfg.dim");
  parsed.set("training.lora.rank", rank != nullptr ? *rank : Node::integer(8));
  parsed.set("training.lora.targets", Node::string("all-linear"));
}

void set_gpus(ParsedFile& parsed) {
  const Node* per_node = value_at(parsed.content, "cluster.gpus_per_node");
  const Node* nodes = value_at(parsed.content, "cluster.num_nodes");
  if (per_node == nullptr || !per_node->is_int()) return;
  parsed.set("parallel.num_gpus", Node::integer(gpus_on_nodes(*per_node, nodes, 1 << 16)));
}

}  // namespace

std::span<const Field> nemo_rl_fields() { return kFields; }

bool is_nemo_rl(const Node& tree) {
  const Node* policy = value_at(tree, "policy");
  return policy != nullptr && policy->is_map() &&
         (value_at(tree, "policy.model_name") != nullptr ||
          value_at(tree, "policy.dtensor_cfg") != nullptr ||
          value_at(tree, "policy.megatron_cfg") != nullptr ||
          value_at(tree, "policy.train_micro_batch_size") != nullptr);
}

void read_nemo_rl(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  read_fields(kFields, parsed);
  set_adapters(parsed);
  const std::string type = text_at(tree, "policy.precision", "bfloat16");
  parsed.set("training.precision", Node::string(type == "float32"   ? "fp32"
                                                : type == "float16" ? "amp-fp16"
                                                                    : "amp-bf16"));
  parsed.set("parallel.fsdp", Node::string("full"));
  parsed.set("parallel.fsdp_version", Node::integer(2));
  parsed.set("training.gradient_clipping", Node::boolean(true));
  if (is_true_at(tree, "policy.sequence_packing.enabled"))
    parsed.set("training.lengths", Node::string("fixed"));
  set_gpus(parsed);
  if (value_at(tree, "dpo") != nullptr) {
    parsed.set("training.preference.method", Node::string("dpo"));
    parsed.set("training.preference.reference", Node::string("model"));
  }
  if (is_true_at(tree, "policy.megatron_cfg.enabled"))
    leave_open("policy.megatron_cfg", "sharding",
               fmt::format("{}: Megatron's training; FSDP 2 is counted", parsed.file), parsed);
  for (const char* key : {"policy.generation", "grpo", "distillation", "teacher"})
    leave_open(key, "memory",
               fmt::format("{}: {}: a training step of the policy is counted, without what shares "
                           "its GPUs",
                           parsed.file, key),
               parsed);
  leave_open("defaults", "sizes",
             fmt::format("{}: settings of the file that `defaults` names are not read; give it "
                         "before this one with --from",
                         parsed.file),
             parsed);
  parsed.base_model = text_at(tree, "policy.model_name");
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace memfathom
