#include <fmt/format.h>

#include <algorithm>
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
    {"parallel.fsdp_version", "fsdp_config.fsdp_version"},
    {"parallel.limit_all_gathers", "fsdp_config.fsdp_limit_all_gathers", FieldKind::kFlag},
    {"parallel.tensor", "megatron_lm_config.megatron_lm_tp_degree"},
    {"parallel.tensor", "parallelism_config.parallelism_config_tp_size"},
    {"parallel.pipeline", "megatron_lm_config.megatron_lm_pp_degree"},
    {"parallel.sequence_parallel", "megatron_lm_config.megatron_lm_sequence_parallelism",
     FieldKind::kFlag},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({
    "fp8_config",
    "parallelism_config.parallelism_config_cp_size",
    "parallelism_config.parallelism_config_sp_size",
});

bool is_kind(const Node& tree, std::string_view name) {
  return text_at(tree, "distributed_type") == name;
}

bool is_false_at(const Node& tree, std::string_view key) {
  const Node* value = value_at(tree, key);
  return value != nullptr && value->is_bool() && !value->as_bool();
}

// A section of another kind of run is not read by it.
void drop_foreign_sections(ParsedFile& parsed) {
  const bool deepspeed = is_kind(parsed.content, "DEEPSPEED");
  const bool fsdp = is_kind(parsed.content, "FSDP");
  std::erase_if(parsed.settings, [&](const KeyChange& change) {
    const bool of_deepspeed =
        change.key == "parallel.zero_stage" || change.key.starts_with("parallel.offload.");
    const bool of_fsdp = change.key == "training.gradient_checkpointing" ||
                         change.key == "parallel.fsdp_version" ||
                         change.key == "parallel.limit_all_gathers";
    return (of_deepspeed && !deepspeed) || (of_fsdp && !fsdp);
  });
}

// Without distribution one process is started, whatever number stands beside it.
void set_single_process(ParsedFile& parsed) {
  const std::string kind = text_at(parsed.content, "distributed_type");
  if (kind != "NO" && kind != "no") return;
  const Node* processes = value_at(parsed.content, "num_processes");
  drop_settings("parallel.num_gpus", parsed);
  parsed.set("parallel.num_gpus", Node::integer(1));
  if (processes != nullptr && processes->is_int() && processes->as_int() > 1)
    parsed.assumptions.push_back(
        fmt::format("{}: distributed_type NO starts one process; num_processes {} is not used "
                    "(MULTI_GPU does)",
                    parsed.file, processes->as_int()));
}

void set_precision(ParsedFile& parsed) {
  const std::string name = text_at(parsed.content, "mixed_precision", "no");
  if (name == "bf16" || name == "fp16") {
    const bool whole = is_kind(parsed.content, "DEEPSPEED");
    parsed.set("training.precision", Node::string(whole ? name : "amp-" + name));
  } else if (name == "fp8") {
    parsed.set("training.precision", Node::string("amp-bf16"));
    leave_open("mixed_precision", "precision",
               fmt::format("{}: mixed_precision fp8 is counted as bf16 autocast; the 8-bit copies "
                           "of weights and inputs are not",
                           parsed.file),
               parsed);
  } else if (name != "no") {
    leave_open("mixed_precision", "precision",
               fmt::format("{}: mixed_precision {}", parsed.file, name), parsed);
  }
}

// Processes on other hardware take no memory of a GPU of these tables.
void list_other_hardware(ParsedFile& parsed) {
  const std::string kind = text_at(parsed.content, "distributed_type");
  const bool is_other = kind == "MULTI_CPU" || kind == "MULTI_XPU" || kind == "MULTI_NPU" ||
                        kind == "MULTI_MLU" || kind == "MULTI_SDAA" || kind == "MULTI_MUSA" ||
                        kind == "MULTI_HPU" || kind == "XLA" || kind == "TPU";
  if (is_other)
    leave_open("distributed_type", "memory",
               fmt::format("{}: distributed_type {}: processes on other hardware; GPUs are counted",
                           parsed.file, kind),
               parsed);
  if (is_true_at(parsed.content, "use_cpu"))
    leave_open("use_cpu", "memory",
               fmt::format("{}: use_cpu: it trains on the CPU; a GPU is counted", parsed.file),
               parsed);
}

// Processes on several machines: how many of them share a host.
void set_nodes(ParsedFile& parsed) {
  const Node* machines = value_at(parsed.content, "num_machines");
  const Node* processes = value_at(parsed.content, "num_processes");
  if (machines == nullptr || processes == nullptr || !machines->is_int() || !processes->is_int())
    return;
  const std::int64_t nodes = machines->as_int(1, 1 << 20);
  if (nodes > 1)
    parsed.set("parallel.gpus_per_node",
               Node::integer(std::max<std::int64_t>(1, processes->as_int() / nodes)));
}

void set_sharding(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  // The second version says by a flag what the first says by a strategy.
  const Node* strategy = value_at(tree, "fsdp_config.fsdp_sharding_strategy");
  if (strategy == nullptr) strategy = value_at(tree, "fsdp_config.fsdp_reshard_after_forward");
  if (strategy == nullptr) {
    set_fsdp(Node::string("full_shard"), parsed);
  } else if (strategy->is_bool()) {
    set_fsdp(Node::string(strategy->as_bool() ? "full_shard" : "shard_grad_op"), parsed);
  } else {
    set_fsdp(*strategy, parsed);
  }
  if (is_true_at(tree, "fsdp_config.fsdp_offload_params"))
    parsed.set("parallel.offload.parameters", Node::string("cpu"));
  if (text_at(tree, "fsdp_config.fsdp_auto_wrap_policy", "NO_WRAP") == "NO_WRAP")
    withhold("fsdp_config.fsdp_auto_wrap_policy", "sharding",
             fmt::format("{}: without fsdp_auto_wrap_policy FSDP gathers the whole model at once; "
                         "a unit for each block is counted (TRANSFORMER_BASED_WRAP)",
                         parsed.file),
             parsed);
}

// Copies of the model that are sharded each are hybrid sharding; the mesh has a process for each
// part.
void set_mesh(ParsedFile& parsed) {
  const auto size = [&](const char* name) {
    const Node* value =
        value_at(parsed.content, fmt::format("parallelism_config.parallelism_config_{}", name));
    return value != nullptr && value->is_int() ? value->as_int(1, 1 << 16) : 1;
  };
  const std::int64_t replicas = size("dp_replicate_size");
  const std::int64_t mesh = replicas * size("dp_shard_size") * size("tp_size") * size("cp_size");
  if (replicas > 1 && is_kind(parsed.content, "FSDP"))
    set_hybrid_fsdp(size("dp_shard_size"), parsed);
  if (mesh > 1 && value_at(parsed.content, "num_processes") == nullptr)
    parsed.set("parallel.num_gpus", Node::integer(mesh));
}

void list_loading(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const bool whole_for_fsdp =
      is_kind(tree, "FSDP") && is_false_at(tree, "fsdp_config.fsdp_cpu_ram_efficient_loading");
  const bool whole_for_zero = is_kind(tree, "DEEPSPEED") &&
                              is_false_at(tree, "deepspeed_config.zero3_init_flag") &&
                              value_at(tree, "deepspeed_config.zero_stage") != nullptr &&
                              value_at(tree, "deepspeed_config.zero_stage")->as_int() == 3;
  if (whole_for_fsdp || whole_for_zero)
    parsed.not_modelled.push_back(fmt::format(
        "{}: every process loads the whole model into host memory before it is sharded "
        "({} is false)",
        parsed.file, whole_for_fsdp ? "fsdp_cpu_ram_efficient_loading" : "zero3_init_flag"));
  if (const std::string backend = text_at(tree, "dynamo_config.dynamo_backend", "NO");
      backend != "NO")
    leave_open("dynamo_config.dynamo_backend", "memory",
               fmt::format("{}: torch.compile ({})", parsed.file, backend), parsed);
}

}  // namespace

std::span<const Field> accelerate_fields() { return kFields; }

bool write_to_accelerate(const KeyChange& change, Node& content) {
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
    if (value_at(content, "fsdp_config.fsdp_auto_wrap_policy") == nullptr)
      content.assign("fsdp_config.fsdp_auto_wrap_policy", Node::string("TRANSFORMER_BASED_WRAP"));
    return true;
  }
  if (change.key == "parallel.offload.parameters" && is_kind(content, "FSDP")) {
    content.assign("fsdp_config.fsdp_offload_params",
                   Node::boolean(change.value.as_string() == "cpu"));
    return true;
  }
  return false;
}

void read_accelerate(ParsedFile& parsed) {
  read_fields(kFields, parsed);
  drop_foreign_sections(parsed);
  set_single_process(parsed);
  set_nodes(parsed);
  set_precision(parsed);
  if (is_kind(parsed.content, "FSDP")) set_sharding(parsed);
  set_mesh(parsed);
  list_loading(parsed);
  list_other_hardware(parsed);
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace memfathom
