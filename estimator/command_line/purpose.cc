#include "estimator/command_line/purpose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "core/error.h"
#include "core/lowercase.h"
#include "estimator/command_line/reading.h"

namespace memfathom {
namespace {

constexpr auto kTraining = std::to_array<std::string_view>(
    {"train",  "training", "trainer", "finetune",     "finetuning", "tune", "tuning", "sft",
     "dpo",    "grpo",     "ppo",     "rlhf",         "rloo",       "kto",  "orpo",   "pretrain",
     "reward", "rm",       "distill", "distillation", "dreambooth", "lora"});

constexpr auto kOthers = std::to_array<std::string_view>(
    {"infer",   "inference", "generate",     "generation", "eval",     "evaluate", "evaluation",
     "predict", "benchmark", "convert",      "conversion", "export",   "merge",    "serve",
     "server",  "quantize",  "quantization", "preprocess", "tokenize", "download", "upload",
     "chat",    "chatbot",   "pytest",       "unittest",   "analyze",  "analyse",  "analysis"});

// Flags that only a training has.
constexpr auto kTrainingFlags =
    std::to_array<std::string_view>({"lr",           "learning_rate",     "epochs",
                                     "num_epochs",   "max_epochs",        "num_train_epochs",
                                     "max_steps",    "max_train_steps",   "optim",
                                     "optimizer",    "optimizer_type",    "do_train",
                                     "train_file",   "train_data",        "train_data_dir",
                                     "dataset",      "dataset_name",      "data_path",
                                     "weight_decay", "warmup_steps",      "warmup_ratio",
                                     "lr_scheduler", "lr_scheduler_type", "train_iters",
                                     "save_steps",   "save_strategy",     "num_training_steps",
                                     "n_epochs",     "output_dir"});

// PEFT's kinds of adapters (its folder `tuners`) and variants of LoRA.
constexpr auto kAdapters = std::to_array<std::string_view>(
    {"lora",     "qlora", "dora",      "qdora",       "adalora",  "adamss", "beft",
     "boft",     "c3a",   "cpt",       "deft",        "delora",   "eva",    "corda",
     "frod",     "glora", "gralora",   "hira",        "hra",      "ia3",    "lily",
     "loha",     "lokr",  "loftq",     "arrow",       "kasa",     "mica",   "peanut",
     "osf",      "lorac", "cartridge", "supertuning", "lorafa",   "miss",   "bone",
     "oft",      "olora", "pissa",     "qalora",      "alora",    "psoft",  "pvera",
     "randlora", "road",  "shira",     "tinylora",    "unilora",  "vblora", "vera",
     "waveft",   "xlora", "fourierft", "adapter",     "adapters", "peft",   "loreft"});
// Those that are two words.
constexpr auto kAdapterPairs =
    std::to_array<std::string_view>({"prefix_tuning", "prompt_tuning", "p_tuning", "ln_tuning",
                                     "trainable_tokens", "lora_fa", "adaption_prompt"});

template <std::size_t n>
bool is_among(std::string_view word, const std::array<std::string_view, n>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : lowercase(std::string(name))) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// "train_lora" of "scripts/train_lora.py" and of "package.train_lora".
std::string_view script_name(std::string_view program) {
  program = program.substr(program.rfind('/') + 1);
  if (program.ends_with(".py")) program.remove_suffix(3);
  return program.substr(program.rfind('.') + 1);
}

bool is_test(std::string_view program) {
  return program.starts_with("tests/") || program.find("/tests/") != std::string_view::npos ||
         script_name(program).starts_with("test_");
}

std::string adapter_in(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  for (std::size_t i = 0; i < words.size(); ++i) {
    // Variants of LoRA are named after it: monteclora, bdlora.
    if (is_among(words[i], kAdapters) || words[i].ends_with("lora")) return words[i];
    if (i + 1 < words.size() && is_among(words[i] + "_" + words[i + 1], kAdapterPairs))
      return words[i] + "_" + words[i + 1];
  }
  return "";
}

// transformers' example scripts train only where --do_train says so.
bool only_evaluates(const CommandReading& reading) {
  return script_name(reading.launch.program).starts_with("run_") &&
         (reading.is_set("do_eval") || reading.is_set("do_predict")) && !reading.is_set("do_train");
}

bool sets_trained_part(const ParsedFile& parsed) {
  return std::any_of(parsed.settings.begin(), parsed.settings.end(), [](const KeyChange& change) {
    return change.key.starts_with("training.lora") || change.key.starts_with("model.train");
  });
}

// A flag that is on and whose name or value is a kind of adapter.
std::string asking_flag(const CommandReading& reading) {
  for (const Node& entry : reading.flags.tree.entries()) {
    const bool is_asked = !entry.is_map() && !entry.is_null() && is_on(entry) &&
                          !reading.is_script_default(entry.key());
    if (!is_asked) continue;
    const bool is_kind = entry.is_string() && is_among(lowercase(entry.as_string()), kAdapters);
    if (is_kind || !adapter_in(entry.key()).empty()) return std::string(entry.key());
  }
  return "";
}

// --use_lora False, said by the command or by its script.
bool is_switched_off(const CommandReading& reading) {
  for (const char* key : {"use_peft", "trains_adapters"}) {
    const Node* flag = reading.flag(key);
    if (flag != nullptr && !is_on(*flag)) return true;
  }
  return false;
}

}  // namespace

void refuse_other_purpose(const CommandReading& reading) {
  const std::string& program = reading.launch.program;
  const auto refuse = [&](const std::string& reason) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: {} {}; name the command that trains, or estimate running the "
                            "model with --model NAME --mode inference",
                            reading.file, program, reason));
  };
  if (only_evaluates(reading)) refuse("evaluates and does not train, without --do_train");
  if (!reading.launch.action.empty()) return;
  if (is_test(program)) refuse("is a test and no training");
  for (const std::string& word : words_of(reading.text("task"))) {
    if (is_among(word, kOthers))
      refuse(fmt::format("does not train, as its --task \"{}\" says", word));
  }
  const std::vector<std::string> words = words_of(script_name(program));
  for (const std::string& word : words) {
    if (word == "flax" || word == "jax")
      refuse("does not train with PyTorch but with JAX, whose memory is not modelled");
  }
  for (const std::string& word : words) {
    if (is_among(word, kTraining)) return;
  }
  for (const std::string& word : words) {
    if (is_among(word, kOthers)) refuse(fmt::format("does not train, as \"{}\" says", word));
  }
}

std::string adapter_in_name(std::string_view program) { return adapter_in(script_name(program)); }

void leave_unread_adapters_open(CommandReading& reading) {
  const bool is_read = sets_trained_part(reading.parsed) ||
                       std::any_of(reading.others.begin(), reading.others.end(), sets_trained_part);
  if (is_read || !reading.launch.action.empty() || is_switched_off(reading)) return;
  const std::string kind = adapter_in_name(reading.launch.program);
  const std::string flag = kind.empty() ? asking_flag(reading) : "";
  if (kind.empty() && flag.empty()) return;
  const std::string named = kind.empty() ? flag : reading.launch.program;
  reading.leave_open(
      named, "adapters",
      fmt::format("{}: {} asks for adapters, but their rank was not read; counted as full training",
                  reading.file, named));
}

void leave_unnamed_open(CommandReading& reading) {
  if (!reading.launch.action.empty()) return;
  const std::string& program = reading.launch.program;
  const auto is_given = [&](std::string_view key) { return reading.flag(key) != nullptr; };
  std::vector<std::string> words = words_of(program);
  const bool is_named = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return is_among(word, kTraining) || word.starts_with("train") || word.starts_with("finetun") ||
           word.starts_with("pretrain");
  });
  const bool has_flag = std::any_of(kTrainingFlags.begin(), kTrainingFlags.end(), is_given) ||
                        reading.flags.tree.find("per_device_train_batch_size") != nullptr;
  if (!is_named && !has_flag)
    reading.leave_open(program, "memory",
                       fmt::format("{}: neither the name {} nor a flag says that it trains; one "
                                   "training step is counted",
                                   reading.file, program));
}

}  // namespace memfathom
