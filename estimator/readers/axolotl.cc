#include <fmt/format.h>

#include <array>
#include <string>

#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "micro_batch_size"},
    {"training.gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"training.sequence_length", "sequence_len"},
    {"training.gradient_checkpointing", "gradient_checkpointing", FieldKind::kCheckpointing},
    {"training.optimizer", "optimizer", FieldKind::kOptimizer},
    {"training.attention", "flash_attention", FieldKind::kFlash},
    {"training.lora.rank", "lora_r"},
    {"training.lora.dropout", "lora_dropout"},
    {"training.lora.targets", "lora_target_modules"},
    {"training.fused_loss", "liger_fused_linear_cross_entropy", FieldKind::kFlag},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({
    "relora_steps",
    "lora_modules_to_save",
    "peft_use_dora",
    "torch_compile",
    "unfrozen_parameters",
    "galore_rank",
    "context_parallel_size",
    "sequence_parallel_degree",
    "xformers_attention",
    "s2_attention",
});

bool is_true(const Node& tree, std::string_view key) {
  const Node* value = value_at(tree, key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

}  // namespace

std::span<const Field> axolotl_fields() { return kFields; }

void read_axolotl(Reading& reading) {
  const Node& tree = reading.content;
  const Node* adapter = value_at(tree, "adapter");
  const std::string kind = adapter != nullptr && adapter->is_string() ? adapter->as_string() : "";
  read_fields(kFields, reading);
  // The rank of an adapter that is switched off means nothing.
  if (kind.empty())
    std::erase_if(reading.settings,
                  [](const KeyChange& change) { return change.key.starts_with("training.lora"); });
  if (!kind.empty() && value_at(tree, "lora_r") == nullptr)
    reading.set("training.lora.rank", Node::integer(8));
  if (is_true(tree, "lora_target_linear")) {
    Node targets = Node::list();
    for (const char* target :
         {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"})
      targets.append(Node::string(target));
    std::erase_if(reading.settings,
                  [](const KeyChange& change) { return change.key == "training.lora.targets"; });
    if (!kind.empty()) reading.set("training.lora.targets", std::move(targets));
  }
  if (kind == "qlora" || is_true(tree, "load_in_4bit")) {
    reading.set("training.quantization", Node::string("nf4-double"));
  } else if (is_true(tree, "load_in_8bit")) {
    reading.set("training.quantization", Node::string("int8"));
  }
  const Node* bf16 = value_at(tree, "bf16");
  if (bf16 != nullptr &&
      (is_true(tree, "bf16") || (bf16->is_string() && bf16->as_string() != "false"))) {
    reading.set("training.precision", Node::string("bf16"));
    reading.set("training.autocast", Node::string("bf16"));
  } else if (is_true(tree, "fp16")) {
    reading.set("training.precision", Node::string("fp16"));
    reading.set("training.autocast", Node::string("fp16"));
  }
  if (const Node* rl = value_at(tree, "rl"); rl != nullptr && rl->is_string()) {
    if (rl->as_string() == "dpo") {
      reading.set("training.preference.method", Node::string("dpo"));
    } else {
      reading.not_modelled.push_back(fmt::format("{}: rl {}", reading.file, rl->as_string()));
    }
  }
  if (const Node* base = value_at(tree, "base_model"); base != nullptr && base->is_string())
    reading.base_model = base->as_string();
  list_not_modelled(kNotModelled, reading);
}

}  // namespace memfathom
