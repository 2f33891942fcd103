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

void set_adapters(Reading& reading) {
  const Node& tree = reading.content;
  const std::string kind = text_at(tree, "peft_config.name");
  if (kind == "freeze") {
    set_last_layers(value_at(tree, "peft_config.freeze_trainable_layers"), reading);
  } else if (kind == "lora") {
    const Node* rank = value_at(tree, "peft_config.r");
    reading.set("training.lora.rank", rank != nullptr ? *rank : Node::integer(8));
    if (const Node* dropout = value_at(tree, "peft_config.lora_dropout"))
      reading.set("training.lora.dropout", *dropout);
    const Node* targets = value_at(tree, "peft_config.target_modules");
    const bool all = targets == nullptr || (targets->is_string() && targets->as_string() == "all");
    reading.set("training.lora.targets", all ? Node::string("all-linear") : lora_targets(*targets));
  } else if (!kind.empty()) {
    reading.not_modelled.push_back(
        fmt::format("{}: peft_config {} is counted as full training", reading.file, kind));
  }
  const Node* bits = value_at(tree, "quant_config.quantization_bit");
  if (bits != nullptr && bits->is_int())
    reading.set("training.quantization", Node::string(bits->as_int() == 8 ? "int8" : "nf4-double"));
}

void set_run(Reading& reading) {
  const std::string kind = text_at(reading.content, "dist_config.name");
  if (!kind.starts_with("fsdp")) return;
  reading.set("parallel.fsdp", Node::string("full"));
  reading.set("parallel.fsdp_version", Node::integer(2));
}

}  // namespace

bool is_llama_factory_v1(const Node& tree) {
  return value_at(tree, "finetuning_type") == nullptr &&
         (value_at(tree, "model_class") != nullptr || value_at(tree, "dist_config") != nullptr ||
          value_at(tree, "peft_config") != nullptr);
}

void read_llama_factory_v1(Reading& reading) {
  const Node& tree = reading.content;
  read_fields(kFields, reading);
  const auto usual = [&](const char* key, std::string_view job, std::int64_t value) {
    if (value_at(tree, key) == nullptr) reading.set(job, Node::integer(value));
  };
  usual("micro_batch_size", "training.batch_size", 1);
  usual("cutoff_len", "training.sequence_length", 2048);
  const Node* bf16 = value_at(tree, "bf16");
  const bool whole = bf16 != nullptr && bf16->is_bool() && !bf16->as_bool();
  reading.set("training.precision", Node::string(whole ? "fp32" : "bf16"));
  const Node* recomputes = value_at(tree, "enable_activation_checkpointing");
  const bool keeps = recomputes != nullptr && recomputes->is_bool() && !recomputes->as_bool();
  reading.set("training.gradient_checkpointing", Node::string(keeps ? "none" : "full"));
  set_adapters(reading);
  set_run(reading);
  if (const std::string attention = text_at(tree, "flash_attn"); !attention.empty())
    set_attention(attention, reading);
  if (text_at(tree, "kernel_config.name") == "liger_kernel")
    reading.set("training.fused_loss", Node::boolean(true));
  reading.base_model = text_at(tree, "model");
  list_not_modelled(kNotModelled, reading);
}

}  // namespace memfathom
