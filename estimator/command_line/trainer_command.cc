// Commands of scripts over transformers' Trainer and of TRL: the flags are TrainingArguments.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>

#include "estimator/command_line/example_lengths.h"
#include "estimator/command_line/purpose.h"
#include "estimator/command_line/reading.h"
#include "estimator/command_line/trl_launch.h"

namespace memfathom {
namespace {

// What such scripts call an argument of their own, in the words of TRL's.
constexpr auto kSpellings = std::to_array<Spelling>({
    {"model", "model_name_or_path"},
    {"model_name", "model_name_or_path"},
    {"model_id", "model_name_or_path"},
    {"model_path", "model_name_or_path"},
    {"base_model", "model_name_or_path"},
    {"base_model_name_or_path", "model_name_or_path"},
    {"actor_model_name_or_path", "model_name_or_path"},  // DeepSpeed-Chat
    {"config_name", "model_name_or_path"},               // run_clm.py from scratch
    {"per_device_batch_size", "per_device_train_batch_size"},
    {"per_device_training_batch_size", "per_device_train_batch_size"},
    {"train_batch_size", "per_device_train_batch_size"},
    {"per_gpu_train_batch_size", "per_device_train_batch_size"},
    {"batch_size", "per_device_train_batch_size"},
    {"model_max_length", "max_length"},
    {"max_seq_len", "max_length"},
    {"max_sequence_length", "max_length"},
    {"block_size", "max_length"},
    {"seq_length", "max_length"},
    {"max_source_length", "max_length"},
    {"max_len", "max_length"},
    {"lora_enable", "trains_adapters"},
    {"use_lora", "trains_adapters"},
    {"use_peft_lora", "trains_adapters"},
    {"lora", "trains_adapters"},
    {"lora_rank", "lora_r"},
    {"lora_dim", "lora_r"},
    {"use_4bit_quantization", "load_in_4bit"},
    {"use_4bit_qunatization", "load_in_4bit"},  // as PEFT's examples spell it
    {"use_8bit_quantization", "load_in_8bit"},
    {"use_8bit_qunatization", "load_in_8bit"},
    {"use_nested_quant", "use_bnb_nested_quant"},
    {"double_quant", "use_bnb_nested_quant"},
    {"attn_impl", "attn_implementation"},
    {"attention_implementation", "attn_implementation"},
    {"gradient_checkpoint", "gradient_checkpointing"},
    {"optimizer", "optim"},
    {"eval_batch_size", "per_device_eval_batch_size"},
    {"per_device_evaluation_batch_size", "per_device_eval_batch_size"},
});

bool names(const CommandReading& reading, std::string_view part) {
  return reading.launch.program.find(part) != std::string::npos ||
         (reading.launch.program == "trl" && reading.launch.action == part);
}

void set_flag(CommandReading& reading, std::string_view key, Node value) {
  reading.flags.tree.set(key, std::move(value));
}

bool is_trl_program(const CommandReading& reading) {
  const std::string& program = reading.launch.program;
  return program == "trl" || program.starts_with("trl.") ||
         program.find("trl/scripts/") != std::string::npos;
}

// A script that is here and takes no arguments of TRL's has none of TRL's defaults.
bool is_other_script(const CommandReading& reading) {
  return reading.has_script && !reading.follows_trl && !is_trl_program(reading);
}

constexpr auto kOwnSwitch = std::to_array<Spelling>({{"use_peft", "trains_adapters"}});

// TRL reads a rank only with --use_peft; scripts that are called after LoRA always do. The rank
// that a script has by default says nothing of whether it trains adapters.
void infer_adapters(CommandReading& reading) {
  const Node* rank = reading.flag("lora_r");
  const bool is_said =
      reading.flag("use_peft") != nullptr || reading.flag("trains_adapters") != nullptr;
  if (is_said || is_trl_program(reading) || rank == nullptr || !rank->is_int() ||
      rank->as_int() <= 0)
    return;
  const std::string kind = adapter_in_name(reading.launch.program);
  const bool is_named = kind == "lora" || kind == "qlora";
  const bool is_given = !reading.is_script_default("lora_r");
  if (is_named || (is_given && reading.flag("lora_alpha") == nullptr))
    set_flag(reading, "trains_adapters", Node::boolean(true));
}

// --use_flash_attn, --bits 4, --mixed_precision bf16: one flag for what TRL says with another.
void translate_values(CommandReading& reading) {
  for (const char* key : {"use_flash_attn", "use_flash_attention_2", "use_flash_attention",
                          "flash_attn", "use_flash_attention2"}) {
    if (reading.is_set(key))
      reading.set_default("attn_implementation", Node::string("flash_attention_2"));
    reading.flags.tree.erase(key);
  }
  if (const Node* bits = reading.flag("bits"); bits != nullptr && bits->is_int()) {
    if (bits->as_int() == 4) set_flag(reading, "load_in_4bit", Node::boolean(true));
    if (bits->as_int() == 8) set_flag(reading, "load_in_8bit", Node::boolean(true));
    reading.flags.tree.erase("bits");
  }
  const std::string mixed = reading.text("mixed_precision");
  if (mixed == "bf16" || mixed == "fp16" || mixed == "no") {
    if (mixed != "no") set_flag(reading, mixed, Node::boolean(true));
    reading.flags.tree.erase("mixed_precision");
  }
  // A type of the Trainer's own, as --dtype bf16 of DeepSpeed-Chat.
  for (const char* key : {"dtype", "torch_dtype"}) {
    const std::string type = reading.text(key);
    if (type == "bf16") set_flag(reading, key, Node::string("bfloat16"));
    if (type == "fp16") set_flag(reading, key, Node::string("float16"));
    if (type == "fp32") set_flag(reading, key, Node::string("float32"));
  }
  infer_adapters(reading);
}

// DeepSpeed-Chat and DeepSpeedExamples: the engine without a file, by its stage.
void read_stage(CommandReading& reading) {
  const Node* stage = reading.flag("zero_stage");
  if (stage != nullptr && stage->is_int()) {
    reading.parsed.set("parallel.zero_stage", Node::integer(stage->as_int(0, 3)));
    if (reading.is_set("offload")) {
      reading.parsed.set("parallel.offload.optimizer", Node::string("cpu"));
      if (stage->as_int() == 3)
        reading.parsed.set("parallel.offload.parameters", Node::string("cpu"));
    }
    reading.flags.tree.erase("zero_stage");
    reading.flags.tree.erase("offload");
  }
  // --deepspeed as a mere switch.
  if (const Node* deepspeed = reading.flag("deepspeed");
      deepspeed != nullptr && deepspeed->is_bool())
    reading.flags.tree.erase("deepspeed");
  if (const std::string config = reading.text("deepspeed_config"); !config.empty()) {
    set_flag(reading, "deepspeed", Node::string(config));
    reading.flags.tree.erase("deepspeed_config");
  }
}

// What a script is for, where only its name says so; the values are TRL's defaults. A recipe that
// says its own is not overruled.
void set_method(const std::optional<Node>& recipe, CommandReading& reading) {
  const auto set_default = [&](std::string_view key, Node value) {
    if (!recipe || value_at(*recipe, key) == nullptr) reading.set_default(key, std::move(value));
  };
  const auto says = [&](std::string_view key) {
    return reading.flag(key) != nullptr || (recipe && value_at(*recipe, key) != nullptr);
  };
  if (names(reading, "grpo") || names(reading, "rloo") || names(reading, "ppo") ||
      names(reading, "online_dpo") || names(reading, "nash") || names(reading, "xpo")) {
    set_default("num_generations", Node::integer(8));
  } else if (names(reading, "kto")) {
    set_default("beta", Node::number(0.1));
    set_default("desirable_weight", Node::number(1));
  } else if (names(reading, "orpo") || names(reading, "cpo") || names(reading, "simpo")) {
    set_default("beta", Node::number(0.1));
    set_default("loss_type", Node::string(names(reading, "simpo") ? "simpo" : "orpo"));
  } else if (names(reading, "dpo")) {
    set_default("beta", Node::number(0.1));
  } else if (names(reading, "reward") || names(reading, "prm")) {
    reading.train_reward_model();
  } else if ((reading.launch.program == "trl" ||
              (names(reading, "sft.py") && !is_other_script(reading))) &&
             !says("max_seq_length") && !says("max_length")) {
    reading.assume(fmt::format("{}: no max_length: TRL's default of 1024", reading.file));
    set_default("max_length", Node::integer(1024));
  }
}

// TRL's own trainers checkpoint and compute in bf16 unless told otherwise (base_config.py of TRL);
// its scripts inherit that, the Trainer of transformers does not.
// Its ModelConfig loads the weights in float32 unless told otherwise (model_config.py).
void set_trl_defaults(const std::optional<Node>& recipe, CommandReading& reading) {
  if (!is_trl_program(reading)) return;
  const auto says = [&](std::string_view key) {
    return reading.flag(key) != nullptr || (recipe && value_at(*recipe, key) != nullptr);
  };
  // Its trainers read a rank only with use_peft.
  if (!says("use_peft")) reading.set_default("use_peft", Node::boolean(false));
  if (!says("gradient_checkpointing")) {
    reading.set_default("gradient_checkpointing", Node::boolean(true));
    reading.assume(fmt::format("{}: gradient_checkpointing is on, TRL's default", reading.file));
  }
  if (!says("bf16") && !says("fp16")) {
    reading.set_default("bf16", Node::boolean(true));
    reading.assume(fmt::format("{}: bf16, TRL's default", reading.file));
  }
  if (!says("dtype") && !says("torch_dtype")) {
    reading.set_default("dtype", Node::string("float32"));
    reading.assume(fmt::format("{}: no dtype: the weights are loaded in float32, TRL's default",
                               reading.file));
  }
}

}  // namespace

void read_trainer_command(CommandReading& reading) {
  std::string config = reading.text("config");
  if (config.empty() && !reading.flags.positionals.empty()) {
    const std::string& first = reading.flags.positionals.front();
    if (first.ends_with(".yaml") || first.ends_with(".yml") || first.ends_with(".json"))
      config = first;
  }
  reading.flags.tree.erase("config");
  reading.rename(kSpellings);
  translate_values(reading);
  read_stage(reading);
  read_trl_launch(reading);
  // TRL's parser and alignment-handbook's scripts take a recipe, and flags over it.
  const std::optional<Node> recipe =
      config.empty() ? std::nullopt : load_named_file(reading, config);
  set_method(recipe, reading);
  set_example_length(reading);
  if (config.empty() || recipe) set_trl_defaults(recipe, reading);
  if (config.empty() && is_other_script(reading)) reading.rename(kOwnSwitch);
  if (recipe) {
    read_with_file(config, reading);
  } else {
    if (!config.empty())
      reading.parsed.unread.push_back(
          {reading.file, "config", "model", "", config + ", which is not here", ""});
    read_as(FileFormat::kTrainingArguments, reading);
  }
  // Scripts with a loop of their own make PyTorch's AdamW; the examples of that kind are so called.
  if (reading.makes_optimizer || names(reading, "no_trainer"))
    reading.parsed.default_optimizer = Node();
}

}  // namespace memfathom
