// ms-swift: `swift sft|pt|rlhf` and `megatron sft|pt|rlhf`.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/parse_number.h"
#include "estimator/command_line/reading.h"

namespace memfathom {
namespace {

constexpr auto kSpellings = std::to_array<Spelling>({
    {"model", "model_name_or_path"},
    {"model_id_or_path", "model_name_or_path"},
    {"lora_rank", "lora_r"},
    {"lora_dropout_p", "lora_dropout"},
    {"target_modules", "lora_target_modules"},
    {"attn_impl", "attn_implementation"},
    {"batch_size", "per_device_train_batch_size"},
    {"eval_batch_size", "per_device_eval_batch_size"},
});

std::string tuner_of(const CommandReading& reading) {
  for (const char* key : {"tuner_type", "train_type", "sft_type"}) {
    if (std::string type = reading.text(key); !type.empty()) return type;
  }
  return "lora";
}

void translate_tuner(CommandReading& reading) {
  const std::string tuner = tuner_of(reading);
  for (const char* key : {"tuner_type", "train_type", "sft_type"}) reading.flags.tree.erase(key);
  if (tuner == "full") {
    for (const char* key : {"lora_r", "lora_alpha", "lora_target_modules", "lora_dropout"})
      reading.flags.tree.erase(key);
    return;
  }
  reading.set_default("use_peft", Node::boolean(true));
  reading.set_default("lora_r", Node::integer(8));
  reading.set_default("lora_target_modules", Node::string("all-linear"));
  if (tuner != "lora")
    reading.leave_open("tuner_type", "adapters",
                       fmt::format("{}: adapters of the kind {} are counted as LoRA of rank {}",
                                   reading.file, tuner, reading.flag("lora_r")->shown()));
}

void translate_bits(CommandReading& reading) {
  for (const char* key : {"quant_bits", "quantization_bit"}) {
    const Node* bits = reading.flag(key);
    if (bits == nullptr || !bits->is_int()) continue;
    if (bits->as_int() == 4) reading.set_default("load_in_4bit", Node::boolean(true));
    if (bits->as_int() == 8) reading.set_default("load_in_8bit", Node::boolean(true));
    reading.flags.tree.erase(key);
  }
}

// --deepspeed zero2 is the tool's own file of that name.
void translate_deepspeed(CommandReading& reading) {
  const std::string name = reading.text("deepspeed");
  if (!name.starts_with("zero") || name.size() < 5 || name[4] < '0' || name[4] > '3' ||
      name.find('.') != std::string::npos)
    return;
  reading.flags.tree.erase("deepspeed");
  reading.parsed.set("parallel.zero_stage", Node::integer(name[4] - '0'));
  if (!name.ends_with("offload")) return;
  reading.parsed.set("parallel.offload.optimizer", Node::string("cpu"));
  if (name[4] == '3') reading.parsed.set("parallel.offload.parameters", Node::string("cpu"));
}

// Parts of a multimodal model that are frozen, where the command says so of any of them.
void set_frozen(CommandReading& reading) {
  struct Part {
    std::string_view flag, name;
    bool is_frozen;  // by default
  };
  static constexpr auto kParts = std::to_array<Part>({{"freeze_vit", "vision_tower", true},
                                                      {"freeze_aligner", "projector", true},
                                                      {"freeze_llm", "language_model", false}});
  bool says = false;
  Node frozen = Node::list();
  for (const Part& part : kParts) {
    const Node* flag = reading.flag(part.flag);
    says = says || flag != nullptr;
    if (flag != nullptr && flag->is_bool() ? flag->as_bool() : part.is_frozen)
      frozen.append(Node::string(std::string(part.name)));
    reading.flags.tree.erase(part.flag);
  }
  const bool trains_all = tuner_of(reading) == "full";
  if (says && trains_all) reading.parsed.set("training.freeze", std::move(frozen));
}

// Images of a multimodal model have as many pixels as the environment allows.
void set_pixels(CommandReading& reading) {
  const auto found = reading.command.environment.find("MAX_PIXELS");
  if (found == reading.command.environment.end() || !found->second.unresolved.empty()) return;
  const std::optional<std::int64_t> pixels = parse_number<std::int64_t>(found->second.text);
  if (!pixels || *pixels < 1 || *pixels > std::int64_t{1} << 32) return;
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(*pixels)));
  reading.parsed.set("training.image_size", Node::integer(side));
  reading.assume(fmt::format("{}: images are taken to have the {} pixels of MAX_PIXELS: {} x {}",
                             reading.file, *pixels, side, side));
}

// Other heads than the language model's: a classifier's takes less than the logits that are
// counted; embeddings and rerankers see several texts for each sample.
void set_task(CommandReading& reading) {
  const std::string task = reading.text("task_type");
  reading.flags.tree.erase("task_type");
  if (task.empty() || task == "causal_lm") return;
  if (task == "seq_cls") {
    reading.leave_out(fmt::format(
        "{}: task_type seq_cls: a head of a few classes; the language model's own is counted, "
        "which takes more",
        reading.file));
  } else {
    reading.leave_open("task_type", "batch",
                       fmt::format("{}: task_type {}: several texts for each sample, without "
                                   "logits over the vocabulary; one text with logits is counted",
                                   reading.file, task));
  }
}

void set_method(CommandReading& reading) {
  const std::string method = reading.text("rlhf_type");
  reading.flags.tree.erase("rlhf_type");
  if (reading.launch.action != "rlhf") return;
  if (method == "grpo" || method == "ppo" || method == "gkd") {
    reading.set_default("num_generations", Node::integer(8));
    // The length of a sample is that of its prompt; the answer comes on top.
    const Node* length = reading.flag("max_length");
    reading.set_default("max_prompt_length", length != nullptr ? *length : Node::integer(2048));
    reading.set_default("max_completion_length", Node::integer(512));
  } else if (method == "kto") {
    reading.set_default("beta", Node::number(0.1));
    reading.set_default("desirable_weight", Node::number(1));
  } else if (method == "rm") {
    reading.train_reward_model();
  } else {
    reading.set_default("beta", Node::number(0.1));
    if (method == "orpo" || method == "cpo" || method == "simpo")
      reading.set_default("loss_type", Node::string(method));
  }
}

}  // namespace

void read_swift_command(CommandReading& reading) {
  if (reading.launch.program == "megatron") {
    read_megatron_command(reading);
    return;
  }
  reading.rename(kSpellings);
  set_frozen(reading);
  translate_tuner(reading);
  translate_bits(reading);
  translate_deepspeed(reading);
  set_method(reading);
  set_task(reading);
  set_pixels(reading);
  if (reading.flag("per_device_train_batch_size") == nullptr) {
    reading.assume(
        fmt::format("{}: no per_device_train_batch_size: swift's default of 1", reading.file));
    reading.set_default("per_device_train_batch_size", Node::integer(1));
  }
  if (reading.flag("max_length") == nullptr && reading.flag("max_prompt_length") == nullptr) {
    reading.assume(
        fmt::format("{}: no max_length, so swift takes samples as long as the model "
                    "allows: 2048 tokens are counted",
                    reading.file));
    reading.set_default("max_length", Node::integer(2048));
  }
  reading.set_default("gradient_checkpointing", Node::boolean(true));
  // The tool loads and trains in the type of the model's config.json, bfloat16 for most.
  reading.set_default("torch_dtype", Node::string("bfloat16"));
  if (reading.flag("fp16") == nullptr && reading.text("torch_dtype") == "bfloat16")
    reading.set_default("bf16", Node::boolean(true));
  read_as(FileFormat::kTrainingArguments, reading);
}

}  // namespace memfathom
