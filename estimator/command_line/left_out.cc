#include "estimator/command_line/left_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "core/lowercase.h"
#include "estimator/command_line/reading.h"

namespace memfathom {
namespace {

// Flags that transformers' Trainer has and other scripts seldom: its batch of 8 is then meant.
constexpr auto kTrainersOwn = std::to_array<std::string_view>(
    {"per_device_eval_batch_size", "num_train_epochs", "lr_scheduler_type", "warmup_ratio",
     "logging_steps", "save_strategy", "save_total_limit", "eval_strategy", "evaluation_strategy",
     "report_to", "do_train", "logging_strategy", "overwrite_output_dir", "save_steps",
     "remove_unused_columns", "bf16", "fp16"});

// A value that the shell does not know is named as such.
bool is_unresolved(const CommandReading& reading) {
  const std::vector<UnresolvedFlag>& flags = reading.flags.unresolved;
  return std::any_of(flags.begin(), flags.end(), [](const UnresolvedFlag& flag) {
    return flag.key.empty() || flag.key.find("batch") != std::string::npos;
  });
}

bool says_batch(const CommandReading& reading) {
  // The Trainer's default is among the settings.
  if (reading.parsed.format == FileFormat::kTrainingArguments) {
    const bool is_said = reading.flag("per_device_train_batch_size") != nullptr ||
                         reading.flag("per_gpu_train_batch_size") != nullptr;
    const auto is_given = [&](std::string_view key) { return reading.flag(key) != nullptr; };
    if (is_said || std::any_of(kTrainersOwn.begin(), kTrainersOwn.end(), is_given)) return true;
    const auto decides = [](const ParsedFile& parsed) {
      return std::any_of(
          parsed.settings.begin(), parsed.settings.end(),
          [](const KeyChange& change) { return change.key == "training.batch_size"; });
    };
    return std::any_of(reading.others.begin(), reading.others.end(), decides);
  }
  return reading.decides("training.batch_size");
}

}  // namespace

void leave_batch_open(CommandReading& reading) {
  if (!reading.launch.action.empty() || is_unresolved(reading) || says_batch(reading)) return;
  reading.parsed.unread.push_back({.file = reading.file,
                                   .key = "batch_size",
                                   .concerns = "batch",
                                   .value = "its value",
                                   .decides = "training.batch_size"});
  reading.assume(
      fmt::format("{}: neither the command nor its script says a batch size "
                  "(--batch-size)",
                  reading.file));
}

void leave_text_tower_open(CommandReading& reading) {
  const std::string program = lowercase(reading.launch.program);
  const std::string& model = reading.parsed.base_model;
  const bool names_clip = lowercase(model).find("clip") != std::string::npos;
  if (program.find("clip") == std::string::npos || model.empty() || names_clip) return;
  reading.leave_open("model", "model",
                     fmt::format("{}: {} trains a text tower beside {}, and compares all samples "
                                 "of all GPUs; the image tower alone is counted",
                                 reading.file, reading.launch.program, model));
}

}  // namespace memfathom
