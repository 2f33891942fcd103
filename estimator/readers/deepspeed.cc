#include <array>

#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "train_micro_batch_size_per_gpu"},
    {"training.gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"parallel.zero_stage", "zero_optimization.stage"},
    {"parallel.offload.optimizer", "zero_optimization.offload_optimizer.device",
     FieldKind::kDevice},
    {"parallel.offload.parameters", "zero_optimization.offload_param.device", FieldKind::kDevice},
    {"parallel.offload.optimizer", "zero_optimization.cpu_offload", FieldKind::kOffload},
    {"parallel.offload.parameters", "zero_optimization.cpu_offload_params", FieldKind::kOffload},
    {"parallel.tensor", "tensor_parallel.autotp_size"},
    {"parallel.zero.reduce_bucket_size", "zero_optimization.reduce_bucket_size"},
    {"parallel.zero.allgather_bucket_size", "zero_optimization.allgather_bucket_size"},
    {"parallel.zero.overlap_comm", "zero_optimization.overlap_comm", FieldKind::kFlag},
    {"parallel.zero.max_live_parameters", "zero_optimization.stage3_max_live_parameters"},
    {"parallel.zero.prefetch_bucket_size", "zero_optimization.stage3_prefetch_bucket_size"},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({
    "zero_optimization.zero_hpz_partition_size",
    "zero_optimization.zero_quantized_weights",
    "zero_optimization.zero_quantized_gradients",
    "activation_checkpointing.partition_activations",
    "activation_checkpointing.cpu_checkpointing",
    "compression_training",
    "pipeline",
    "hybrid_engine",
    "sparse_attention",
    "amp.enabled",
    "autotuning.enabled",
    "data_efficiency.enabled",
});

bool enabled(const Node& tree, std::string_view key, ParsedFile& parsed) {
  const Node* value = value_at(tree, key);
  if (value == nullptr) return false;
  if (value->is_string() && value->as_string() == "auto") {
    parsed.autos.emplace_back(key);
    return false;
  }
  return value->as_bool();
}

}  // namespace

std::span<const Field> deepspeed_fields() { return kFields; }

bool write_to_deepspeed(const KeyChange& change, const Node& job, Node& content) {
  const bool batch = change.key == "training.batch_size";
  if (batch || change.key == "training.gradient_accumulation_steps") {
    const Node* whole = value_at(content, "train_batch_size");
    if (whole == nullptr || !whole->is_number()) return false;
    // The whole batch follows from the other two, which must both be there then.
    content.erase("train_batch_size");
    const auto say = [&](std::string_view key, std::string_view file) {
      const Node* value = value_at(job, key);
      content.set(file, value != nullptr ? *value : Node::integer(1));
    };
    say("training.batch_size", "train_micro_batch_size_per_gpu");
    say("training.gradient_accumulation_steps", "gradient_accumulation_steps");
    return true;
  }
  if (change.key != "training.precision") return false;
  std::string name = change.value.as_string();
  if (name.starts_with("amp-")) name.erase(0, 4);  // the engine has 16-bit weights or none
  for (const char* type : {"bf16", "fp16"}) {
    const std::string key = std::string(type) + ".enabled";
    if (name == type || value_at(content, key) != nullptr)
      content.assign(key, Node::boolean(name == type));
  }
  return true;
}

void read_deepspeed(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  read_fields(kFields, parsed);
  const bool bf16 =
      enabled(tree, "bf16.enabled", parsed) || enabled(tree, "bfloat16.enabled", parsed);
  const bool fp16 = enabled(tree, "fp16.enabled", parsed);
  // The engine keeps 16-bit weights and an fp32 copy of them beside the optimizer's states.
  if (bf16 || fp16) parsed.set("training.precision", Node::string(bf16 ? "bf16" : "fp16"));
  if (const Node* type = value_at(tree, "optimizer.type"); type != nullptr && type->is_string()) {
    const std::string& name = type->as_string();
    const bool adam = name == "Adam" || name == "AdamW" || name == "FusedAdam" ||
                      name == "DeepSpeedCPUAdam" || name == "auto";
    if (adam) {
      parsed.set("training.optimizer", Node::string("adamw"));
    } else if (name == "SGD" || name == "Lion" || name == "Adagrad") {
      parsed.set("training.optimizer", Node::string(name == "SGD"    ? "sgd"
                                                    : name == "Lion" ? "lion"
                                                                     : "adagrad"));
    } else {
      leave_open("optimizer.type", "optimizer",
                 parsed.file + ": the optimizer " + name + "; AdamW is counted instead", parsed);
    }
  }
  if (const Node* norm = value_at(tree, "gradient_clipping");
      norm != nullptr && norm->is_number()) {
    parsed.set("training.gradient_clipping", Node::boolean(norm->as_number() > 0));
  }
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace memfathom
