// NeMo Automodel's recipes: sections that name what builds them, FSDP 2 by default.
#include <fmt/format.h>

#include <array>
#include <string>

#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "step_scheduler.local_batch_size"},
    {"training.optimizer", "optimizer", FieldKind::kOptimizer},
    {"training.lora.rank", "peft.dim"},
    {"training.lora.dropout", "peft.dropout"},
    {"parallel.tensor", "distributed.tp_size"},
    {"parallel.pipeline", "distributed.pp_size"},
    {"training.gradient_checkpointing", "distributed.activation_checkpointing",
     FieldKind::kCheckpointing},
    {"training.gradient_checkpointing", "distributed.strategy.activation_checkpointing",
     FieldKind::kCheckpointing},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({
    "distributed.cp_size",
    "distributed.ep_size",
    "compile.enabled",
    "peft.use_dora",
    "model.backend",
    "distributed.sequence_parallel",
    "distributed.dp_replicate_size",
});

// '*_proj' and match_all_linear are every linear layer; a list has names, some with a path.
void set_targets(ParsedFile& parsed) {
  if (value_at(parsed.content, "peft.dim") == nullptr) return;
  const Node* targets = value_at(parsed.content, "peft.target_modules");
  const bool all = is_true_at(parsed.content, "peft.match_all_linear") || targets == nullptr ||
                   (targets->is_string() && targets->as_string().starts_with("*"));
  if (all) {
    parsed.set("training.lora.targets", Node::string("all-linear"));
    return;
  }
  Node names = Node::list();
  const auto add = [&](const Node& target) {
    if (!target.is_string()) return;
    const std::string& name = target.as_string();
    names.append(Node::string(name.substr(name.rfind('.') + 1)));
  };
  if (targets->is_list()) {
    for (const Node& target : targets->items()) add(target);
  } else {
    add(*targets);
  }
  parsed.set("training.lora.targets", std::move(names));
}

void set_length(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const Node* packed = value_at(tree, "packed_sequence.packed_sequence_size");
  if (packed != nullptr && packed->is_int() && packed->as_int() > 0) {
    parsed.set("training.sequence_length", *packed);
    parsed.set("training.lengths", Node::string("fixed"));
    return;
  }
  for (const char* key : {"dataset.seq_length", "dataset.seq_len", "dataset.max_length",
                          "dataloader.collate_fn.max_length"}) {
    const Node* length = value_at(tree, key);
    if (length == nullptr || !length->is_int()) continue;
    parsed.set("training.sequence_length", *length);
    return;
  }
}

void set_precision(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  std::string type = text_at(tree, "model.torch_dtype", "bf16");
  if (type.starts_with("torch.")) type.erase(0, 6);
  const bool whole = type == "float32" || type == "fp32";
  parsed.set("training.precision", Node::string(whole ? "amp-bf16" : "bf16"));
  if (is_true_at(tree, "quantization.load_in_4bit"))
    parsed.set("training.quantization", Node::string("nf4-double"));
  if (is_true_at(tree, "quantization.load_in_8bit"))
    parsed.set("training.quantization", Node::string("int8"));
  if (is_true_at(tree, "fp8.enabled"))
    leave_open("fp8", "precision",
               fmt::format("{}: fp8: products in 8 bits are counted as bf16's", parsed.file),
               parsed);
}

void set_sharding(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  std::string strategy =
      text_at(tree, "distributed.strategy", text_at(tree, "distributed._target_"));
  if (strategy.find("ddp") == std::string::npos && strategy.find("DDP") == std::string::npos) {
    parsed.set("parallel.fsdp", Node::string("full"));
    parsed.set("parallel.fsdp_version", Node::integer(2));
  }
  const Node* data = value_at(tree, "distributed.dp_size");
  if (data == nullptr || !data->is_int()) return;
  std::int64_t gpus = data->as_int(1, 1 << 20);
  for (const char* key : {"distributed.tp_size", "distributed.cp_size", "distributed.pp_size"}) {
    const Node* size = value_at(tree, key);
    if (size != nullptr && size->is_int()) gpus *= size->as_int(1, 1 << 12);
  }
  parsed.set("parallel.num_gpus", Node::integer(gpus));
}

}  // namespace

std::span<const Field> nemo_automodel_fields() { return kFields; }

bool is_nemo_automodel(const Node& tree) {
  return value_at(tree, "step_scheduler") != nullptr && value_at(tree, "model") != nullptr;
}

void read_nemo_automodel(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  read_fields(kFields, parsed);
  set_targets(parsed);
  set_length(parsed);
  set_precision(parsed);
  set_sharding(parsed);
  for (const char* key :
       {"model.pretrained_model_name_or_path", "model.config.pretrained_model_name_or_path",
        "model.config.name_or_path"}) {
    if (parsed.base_model.empty()) parsed.base_model = text_at(tree, key);
  }
  if (const std::string name = text_at(tree, "model.attn_implementation"); !name.empty())
    set_attention(name, parsed);
  const std::string loss = text_at(tree, "loss_fn._target_");
  if (loss.find("FusedLinear") != std::string::npos)
    parsed.set("training.fused_loss", Node::boolean(true));
  for (const char* key : {"teacher_model", "freeze_config", "speculative"})
    leave_open(key, "model",
               fmt::format("{}: {}: what it changes of the model is not counted", parsed.file, key),
               parsed);
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace memfathom
