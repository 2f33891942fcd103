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

void read_accelerate(Reading& reading) {
  const Node& tree = reading.content;
  read_fields(kFields, reading);
  const Node* kind = value_at(tree, "distributed_type");
  const bool deepspeed = kind != nullptr && kind->is_string() && kind->as_string() == "DEEPSPEED";
  if (const Node* precision = value_at(tree, "mixed_precision");
      precision != nullptr && precision->is_string() && precision->as_string() != "no") {
    const std::string& name = precision->as_string();
    if (name == "bf16" || name == "fp16") {
      reading.set("training.precision", Node::string(deepspeed ? name : "amp-" + name));
    } else {
      reading.not_modelled.push_back(fmt::format("{}: mixed_precision {}", reading.file, name));
    }
  }
  if (kind != nullptr && kind->is_string() && kind->as_string() == "FSDP") {
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
