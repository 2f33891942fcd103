// LitGPT's YAML (config_hub): Fabric's precision, its own LoRA and quantization, FSDP on several
// devices.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "estimator/readers/default_optimizer.h"
#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "train.micro_batch_size"},
    {"training.sequence_length", "train.max_seq_length"},
    {"training.optimizer", "optimizer", FieldKind::kOptimizer},
    {"training.lora.rank", "lora_r"},
    {"training.lora.dropout", "lora_dropout"},
});

// What it takes where nothing is said: weights in few bits allow no mixed precision.
std::string default_precision(ParsedFile& parsed) {
  const bool has_bits = !text_at(parsed.content, "quantize").empty();
  std::string name = has_bits ? "bf16-true" : "bf16-mixed";
  parsed.assumptions.push_back(fmt::format("{}: no precision: {}, LitGPT's default{}", parsed.file,
                                           name, has_bits ? "" : " (weights in fp32)"));
  return name;
}

void set_precision(ParsedFile& parsed) {
  std::string name = text_at(parsed.content, "precision");
  if (name.empty()) name = default_precision(parsed);
  const bool whole = name.ends_with("-true");
  const std::string type = name.substr(0, name.find('-'));
  if (type == "32") {
    parsed.set("training.precision", Node::string("fp32"));
  } else if (type == "bf16" || type == "16") {
    const std::string ours = type == "16" ? "fp16" : "bf16";
    parsed.set("training.precision", Node::string(whole ? ours : "amp-" + ours));
  } else {
    leave_open("precision", "precision",
               fmt::format("{}: precision {}; fp32 is counted", parsed.file, name), parsed);
  }
  const std::string bits = text_at(parsed.content, "quantize");
  if (bits.starts_with("bnb.nf4")) {
    parsed.set("training.quantization", Node::string(bits.ends_with("-dq") ? "nf4-double" : "nf4"));
  } else if (bits.starts_with("bnb.int8")) {
    parsed.set("training.quantization", Node::string("int8"));
  } else if (!bits.empty()) {
    leave_open("quantize", "precision",
               fmt::format("{}: quantize {}; the weights are counted whole", parsed.file, bits),
               parsed);
  }
}

// Its query, key and value are one layer; each flag adapts its part of it.
void set_adapters(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  struct Flag {
    const char* key;
    bool otherwise;
    std::array<const char*, 3> targets;
  };
  static constexpr auto kFlags = std::to_array<Flag>({
      {"lora_query", true, {"q_proj"}},
      {"lora_key", false, {"k_proj"}},
      {"lora_value", true, {"v_proj"}},
      {"lora_projection", false, {"o_proj"}},
      {"lora_mlp", false, {"gate_proj", "up_proj", "down_proj"}},
  });
  Node targets = Node::list();
  for (const Flag& flag : kFlags) {
    const Node* value = value_at(tree, flag.key);
    if (!(value != nullptr ? is_on(*value) : flag.otherwise)) continue;
    for (const char* target : flag.targets) {
      if (target != nullptr) targets.append(Node::string(target));
    }
  }
  if (!targets.items().empty()) parsed.set("training.lora.targets", std::move(targets));
  if (is_true_at(tree, "lora_head"))
    leave_open("lora_head", "adapters",
               fmt::format("{}: adapters of the head (lora_head) are not counted", parsed.file),
               parsed);
}

std::int64_t count_at(const Node& tree, std::string_view key, std::int64_t otherwise) {
  const Node* value = value_at(tree, key);
  return value != nullptr && value->is_int() ? value->as_int(1, 1 << 20) : otherwise;
}

// On several devices its scripts shard with FSDP; those that fine-tune checkpoint each block then.
void set_devices(bool fine_tunes, ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const std::int64_t gpus = count_at(tree, "devices", 1) * count_at(tree, "num_nodes", 1);
  parsed.set("parallel.num_gpus", Node::integer(gpus));
  if (text_at(tree, "devices") == "auto")
    parsed.assumptions.push_back(
        fmt::format("{}: devices: auto is every GPU of the machine: 1 is counted, without sharding "
                    "(--num-gpus, --fsdp)",
                    parsed.file));
  const std::int64_t batch = count_at(tree, "train.global_batch_size", 0);
  if (batch > 0) {
    const std::int64_t steps = batch / (gpus * count_at(tree, "train.micro_batch_size", 1));
    parsed.set("training.gradient_accumulation_steps",
               Node::integer(std::max<std::int64_t>(1, steps)));
  }
  if (gpus < 2) return;
  parsed.set("parallel.fsdp", Node::string(fine_tunes ? "full" : "hybrid"));
  if (fine_tunes) parsed.set("training.gradient_checkpointing", Node::string("full"));
}

// pretrain.py asks PyTorch for the fused form of its optimizer, which AdamW has.
void fuse_optimizer(ParsedFile& parsed) {
  parsed.default_optimizer = fused_adamw();
  for (KeyChange& change : parsed.settings) {
    if (change.key == "training.optimizer" && change.value.same_value(Node::string("adamw")))
      change.value = fused_adamw();
  }
}

// "checkpoints/meta-llama/Llama-2-7b-hf" is meta-llama/Llama-2-7b-hf.
std::string base_model(const Node& tree) {
  std::string name = text_at(tree, "model_name");
  if (name.empty()) name = text_at(tree, "checkpoint_dir");
  if (name.empty()) name = text_at(tree, "initial_checkpoint_dir");
  while (name.ends_with('/')) name.pop_back();
  if (name.starts_with("checkpoints/")) name.erase(0, 12);
  return name;
}

}  // namespace

std::span<const Field> litgpt_fields() { return kFields; }

bool is_litgpt(const Node& tree) {
  const auto has = [&](std::string_view key) { return value_at(tree, key) != nullptr; };
  return has("train.micro_batch_size") && has("train.global_batch_size") &&
         (has("checkpoint_dir") || has("model_name") || has("model_config"));
}

void read_litgpt(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  read_fields(kFields, parsed);
  const bool adapts = value_at(tree, "lora_r") != nullptr;
  if (adapts) set_adapters(parsed);
  set_precision(parsed);
  const bool fine_tunes = value_at(tree, "checkpoint_dir") != nullptr;
  if (!fine_tunes) fuse_optimizer(parsed);
  set_devices(fine_tunes, parsed);
  parsed.set("target.stack.library", Node::string("litgpt"));
  const Node* norm = value_at(tree, "train.max_norm");
  if (norm != nullptr && norm->is_number())
    parsed.set("training.gradient_clipping", Node::boolean(norm->as_number() > 0));
  parsed.base_model = base_model(tree);
}

}  // namespace memfathom
