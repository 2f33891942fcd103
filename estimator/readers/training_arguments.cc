#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/lowercase.h"
#include "estimator/readers/default_optimizer.h"
#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "per_device_train_batch_size"},
    {"training.batch_size", "per_gpu_train_batch_size"},  // until transformers 5
    {"training.gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"training.gradient_checkpointing", "gradient_checkpointing", FieldKind::kCheckpointing},
    {"training.checkpoint_reentrant", "gradient_checkpointing_kwargs.use_reentrant",
     FieldKind::kFlag},
    {"training.gradient_checkpointing", "use_gradient_checkpointing", FieldKind::kCheckpointing},
    // Their names from transformers 5 on.
    {"training.gradient_checkpointing", "activation_checkpointing", FieldKind::kCheckpointing},
    {"training.checkpoint_reentrant", "activation_checkpointing_kwargs.use_reentrant",
     FieldKind::kFlag},
    {"training.use_cache", "use_cache", FieldKind::kFlag},
    {"training.optimizer", "optim", FieldKind::kOptimizer},
    {"training.evaluation.batch_size", "per_device_eval_batch_size"},
    {"training.sequence_length", "max_length"},
    {"training.sequence_length", "max_seq_length"},
    {"training.sequence_length", "model_max_length"},
    {"training.drop_last", "dataloader_drop_last", FieldKind::kFlag},
    {"training.fused_loss", "use_liger_kernel", FieldKind::kFlag},
    {"parallel.offload.activations", "activation_offloading", FieldKind::kOffload},
    {"parallel.limit_all_gathers", "fsdp_config.limit_all_gathers", FieldKind::kFlag},
    {"parallel.limit_all_gathers", "fsdp_config.fsdp_limit_all_gathers", FieldKind::kFlag},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({
    "torch_compile",
    "optim_target_modules",
    "tp_size",
    "auto_find_batch_size",
    "label_smoothing_factor",
    "modules_to_save",
    "lora_modules_to_save",
});

// The model's name, where one file holds the arguments of the whole script.
std::string model_named_in(const Node& tree) {
  for (const char* key : {"model_name_or_path", "model_name", "model_id"}) {
    std::string name = text_at(tree, key);
    if (!name.empty()) return name;
  }
  return "";
}

}  // namespace

// Evaluation has batches of its own, of 8 where nobody says otherwise.
void set_evaluation(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  std::string when = text_at(tree, "eval_strategy", text_at(tree, "evaluation_strategy", "no"));
  when = when.substr(when.rfind('.') + 1);  // "IntervalStrategy.NO"
  const auto is_batch = [](const KeyChange& change) {
    return change.key == "training.evaluation.batch_size";
  };
  if (when == "no" || when == "NO") {
    std::erase_if(parsed.settings, is_batch);
  } else if (std::none_of(parsed.settings.begin(), parsed.settings.end(), is_batch)) {
    parsed.set("training.evaluation.batch_size", Node::integer(8));
    parsed.assumptions.push_back(
        fmt::format("{} enables evaluation and does not set per_device_eval_batch_size; using the "
                    "library's default of 8",
                    parsed.file));
  }
}

std::span<const Field> training_arguments_fields() { return kFields; }

Node zero_section(const Node& stage) {
  Node section = Node::map();
  section.set("train_micro_batch_size_per_gpu", Node::string("auto"));
  section.set("gradient_accumulation_steps", Node::string("auto"));
  section.assign("zero_optimization.stage", stage);
  return section;
}

bool write_to_training_arguments(const KeyChange& change, Node& content) {
  if (change.key == "training.precision") {
    const std::string& name = change.value.as_string();
    if (name != "fp32" && !name.starts_with("amp-"))
      return false;  // weights are the model's affair
    for (const char* type : {"bf16", "fp16"}) {
      const bool on = name.ends_with(type);
      if (on || value_at(content, type) != nullptr) content.set(type, Node::boolean(on));
    }
    return true;
  }
  if (change.key == "parallel.fsdp" && change.value.is_string()) {
    content.set("fsdp",
                Node::string(change.value.as_string() == "hybrid" ? "hybrid_shard auto_wrap"
                                                                  : "full_shard auto_wrap"));
    return true;
  }
  const Node* deepspeed = value_at(content, "deepspeed");
  if (change.key == "parallel.zero_stage" && deepspeed == nullptr) {
    content.set("deepspeed", zero_section(change.value));
    return true;
  }
  return false;
}

void set_hybrid_fsdp(std::int64_t shards, ParsedFile& parsed) {
  for (const char* key : {"parallel.fsdp", "parallel.gpus_per_node"}) drop_settings(key, parsed);
  parsed.set("parallel.fsdp", Node::string("hybrid"));
  parsed.set("parallel.gpus_per_node", Node::integer(shards));
}

void set_fsdp(const Node& value, ParsedFile& parsed) {
  std::string text;
  if (value.is_list()) {
    for (const Node& item : value.items()) text += item.as_string() + " ";
  } else {
    text = value.is_string() ? value.as_string() : value.shown();
  }
  text = lowercase(std::move(text));
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  if (text.empty() || has("no_shard") || text == "3" || text == "false") return;
  if (has("hybrid") || text == "4") {
    parsed.set("parallel.fsdp", Node::string("hybrid"));
  } else if (has("shard_grad_op") || text == "2") {
    parsed.set("parallel.fsdp", Node::string("full"));
    withhold(value.path().empty() ? "fsdp" : value.path(), "sharding",
             fmt::format("{}: SHARD_GRAD_OP keeps the gathered weights between forward and "
                         "backward; it is counted as FULL_SHARD",
                         parsed.file),
             parsed);
  } else if (has("full_shard") || text == "1" || text == "true") {
    parsed.set("parallel.fsdp", Node::string("full"));
  } else {
    withhold(value.path().empty() ? "fsdp" : value.path(), "sharding",
             fmt::format("{}: fsdp {} names no way of sharding that is known; none is counted",
                         parsed.file, text),
             parsed);
  }
  if (has("offload")) parsed.set("parallel.offload.parameters", Node::string("cpu"));
}

void set_attention(const std::string& name, ParsedFile& parsed) {
  const auto has = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  if (has("flash")) {
    parsed.set("training.attention", Node::string("flash"));
  } else if (has("sdpa") || has("eager")) {
    parsed.set("training.attention", Node::string(has("eager") ? "eager" : "sdpa"));
  } else if (has("xformers")) {
    parsed.set("training.attention", Node::string("efficient"));
  } else {
    parsed.set("training.attention", Node::string("flash"));
    withhold("attn_implementation", "attention",
             fmt::format("{}: attention {} is counted as flash attention", parsed.file, name),
             parsed);
  }
}

void read_training_arguments(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  read_fields(kFields, parsed);
  set_packed({"packing"}, parsed);
  parsed.default_optimizer = trainer_default_optimizer();
  if (value_at(tree, "per_device_train_batch_size") == nullptr &&
      value_at(tree, "per_gpu_train_batch_size") == nullptr) {
    parsed.set("training.batch_size", Node::integer(8));
    parsed.assumptions.push_back(
        fmt::format("{} does not set per_device_train_batch_size; using the library's default of 8",
                    parsed.file));
  }
  const bool fp16 = is_true_at(tree, "fp16");
  if (is_true_at(tree, "bf16")) {
    parsed.set("training.precision", Node::string("amp-bf16"));
  } else if (fp16) {
    parsed.set("training.precision", Node::string("amp-fp16"));
    parsed.set("training.grad_scaler", Node::boolean(true));
  }
  const Node* norm = value_at(tree, "max_grad_norm");
  parsed.set("training.gradient_clipping",
             Node::boolean(norm == nullptr || (norm->is_number() && norm->as_number() > 0)));
  set_evaluation(parsed);
  parsed.base_model = model_named_in(tree);
  if (const Node* fsdp = value_at(tree, "fsdp")) set_fsdp(*fsdp, parsed);
  read_trl_arguments(parsed);
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace memfathom
