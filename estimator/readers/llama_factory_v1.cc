// LLaMA-Factory's second kind of file: sections for adapters, bits and the kind of run, each with a
// name.
#include <fmt/format.h>

#include <array>
#include <string>

#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "micro_batch_size"},
    {"training.sequence_length", "cutoff_len"},
    {"training.optimizer", "optim_config", FieldKind::kOptimizer},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({"cp_size", "tp_size", "ep_size"});

void set_adapters(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const std::string kind = text_at(tree, "peft_config.name");
  if (kind == "freeze") {
    set_last_layers(value_at(tree, "peft_config.freeze_trainable_layers"), parsed);
  } else if (kind == "lora") {
    const Node* rank = value_at(tree, "peft_config.r");
    parsed.set("training.lora.rank", rank != nullptr ? *rank : Node::integer(8));
    if (const Node* dropout = value_at(tree, "peft_config.lora_dropout"))
      parsed.set("training.lora.dropout", *dropout);
    const Node* targets = value_at(tree, "peft_config.target_modules");
    const bool all = targets == nullptr || (targets->is_string() && targets->as_string() == "all");
    parsed.set("training.lora.targets", all ? Node::string("all-linear") : lora_targets(*targets));
  } else if (!kind.empty()) {
    leave_open("peft_config.name", "adapters",
               fmt::format("{}: peft_config {} is counted as full training", parsed.file, kind),
               parsed);
  }
  const Node* bits = value_at(tree, "quant_config.quantization_bit");
  if (bits != nullptr && bits->is_int())
    parsed.set("training.quantization", Node::string(bits->as_int() == 8 ? "int8" : "nf4-double"));
}

void set_run(ParsedFile& parsed) {
  const std::string kind = text_at(parsed.content, "dist_config.name");
  if (!kind.starts_with("fsdp")) return;
  parsed.set("parallel.fsdp", Node::string("full"));
  parsed.set("parallel.fsdp_version", Node::integer(2));
}

}  // namespace

bool is_llama_factory_v1(const Node& tree) {
  return value_at(tree, "finetuning_type") == nullptr &&
         (value_at(tree, "model_class") != nullptr || value_at(tree, "dist_config") != nullptr ||
          value_at(tree, "peft_config") != nullptr);
}

void read_llama_factory_v1(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  read_fields(kFields, parsed);
  const auto usual = [&](const char* key, std::string_view job, std::int64_t value) {
    if (value_at(tree, key) == nullptr) parsed.set(job, Node::integer(value));
  };
  usual("micro_batch_size", "training.batch_size", 1);
  usual("cutoff_len", "training.sequence_length", 2048);
  const Node* bf16 = value_at(tree, "bf16");
  const bool whole = bf16 != nullptr && bf16->is_bool() && !bf16->as_bool();
  parsed.set("training.precision", Node::string(whole ? "fp32" : "bf16"));
  const Node* recomputes = value_at(tree, "enable_activation_checkpointing");
  const bool keeps = recomputes != nullptr && recomputes->is_bool() && !recomputes->as_bool();
  parsed.set("training.gradient_checkpointing", Node::string(keeps ? "none" : "full"));
  set_adapters(parsed);
  set_run(parsed);
  if (const std::string attention = text_at(tree, "flash_attn"); !attention.empty())
    set_attention(attention, parsed);
  if (text_at(tree, "kernel_config.name") == "liger_kernel")
    parsed.set("training.fused_loss", Node::boolean(true));
  parsed.base_model = text_at(tree, "model");
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace memfathom
