#include <fmt/format.h>

#include <array>

#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"parallel.num_gpus", "num_processes"},
    {"parallel.zero_stage", "deepspeed_config.zero_stage"},
    {"training.gradient_accumulation_steps", "deepspeed_config.gradient_accumulation_steps"},
    {"training.gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"parallel.offload.optimizer", "deepspeed_config.offload_optimizer_device", FieldKind::kDevice},
    {"parallel.offload.parameters", "deepspeed_config.offload_param_device", FieldKind::kDevice},
    {"training.gradient_checkpointing", "fsdp_config.fsdp_activation_checkpointing",
     FieldKind::kCheckpointing},
    {"parallel.tensor", "megatron_lm_config.megatron_lm_tp_degree"},
    {"parallel.pipeline", "megatron_lm_config.megatron_lm_pp_degree"},
    {"parallel.sequence_parallel", "megatron_lm_config.megatron_lm_sequence_parallelism",
     FieldKind::kFlag},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({
    "dynamo_config",
    "fp8_config",
    "deepspeed_config.zero3_init_flag",
    "fsdp_config.fsdp_cpu_ram_efficient_loading",
    "mpirun_config",
    "ipex_config",
});

}  // namespace

std::span<const Field> accelerate_fields() { return kFields; }

namespace {

bool is_kind(const Node& tree, std::string_view name) {
  const Node* kind = value_at(tree, "distributed_type");
  return kind != nullptr && kind->is_string() && kind->as_string() == name;
}

}  // namespace

bool say_in_accelerate(const KeyChange& change, Node& content) {
  if (change.key == "training.precision") {
    std::string name = change.value.as_string();
    const bool mixed = name.starts_with("amp-");
    if (mixed) name.erase(0, 4);
    // Only under DeepSpeed does mixed precision mean 16-bit weights.
    if (name != "fp32" && !mixed && !is_kind(content, "DEEPSPEED")) return false;
    content.set("mixed_precision", Node::string(name == "fp32" ? "no" : name));
    return true;
  }
  if (change.key == "parallel.zero_stage") {
    content.set("distributed_type", Node::string("DEEPSPEED"));
    content.assign("deepspeed_config.zero_stage", change.value);
    return true;
  }
  if (change.key == "parallel.fsdp" && change.value.is_string()) {
    content.set("distributed_type", Node::string("FSDP"));
    content.assign(
        "fsdp_config.fsdp_sharding_strategy",
        Node::string(change.value.as_string() == "hybrid" ? "HYBRID_SHARD" : "FULL_SHARD"));
    return true;
  }
  if (change.key == "parallel.offload.parameters" && is_kind(content, "FSDP")) {
    content.assign("fsdp_config.fsdp_offload_params",
                   Node::boolean(change.value.as_string() == "cpu"));
    return true;
  }
  return false;
}

void read_accelerate(Reading& reading) {
  const Node& tree = reading.content;
  read_fields(kFields, reading);
  const bool deepspeed = is_kind(tree, "DEEPSPEED");
  // A section of another kind of run is not read by it.
  std::erase_if(reading.settings, [&](const KeyChange& change) {
    const bool of_deepspeed =
        change.key == "parallel.zero_stage" || change.key.starts_with("parallel.offload.");
    return (of_deepspeed && !deepspeed) ||
           (change.key == "training.gradient_checkpointing" && !is_kind(tree, "FSDP"));
  });
  if (const Node* precision = value_at(tree, "mixed_precision");
      precision != nullptr && precision->is_string() && precision->as_string() != "no") {
    const std::string& name = precision->as_string();
    if (name == "bf16" || name == "fp16") {
      reading.set("training.precision", Node::string(deepspeed ? name : "amp-" + name));
    } else {
      reading.not_modelled.push_back(fmt::format("{}: mixed_precision {}", reading.file, name));
    }
  }
  if (is_kind(tree, "FSDP")) {
    const Node* strategy = value_at(tree, "fsdp_config.fsdp_sharding_strategy");
    set_fsdp(strategy != nullptr ? *strategy : Node::string("full_shard"), reading);
    if (const Node* offload = value_at(tree, "fsdp_config.fsdp_offload_params");
        offload != nullptr && offload->as_bool()) {
      reading.set("parallel.offload.parameters", Node::string("cpu"));
    }
    if (const Node* version = value_at(tree, "fsdp_config.fsdp_version"))
      reading.set("parallel.fsdp_version", *version);
  }
  list_not_modelled(kNotModelled, reading);
}

}  // namespace memfathom
