// Commands of tools whose settings are in a file of their own, and of LLaMA-Factory.
#include <fmt/format.h>

#include <array>
#include <string>

#include "core/error.h"
#include "estimator/command_line/reading.h"

namespace memfathom {
namespace {

bool is_configuration(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml") || path.ends_with(".json") ||
         path.ends_with(".toml");
}

std::string named_configuration(CommandReading& reading) {
  for (const std::string& positional : reading.flags.positionals) {
    if (is_configuration(positional)) return positional;
  }
  std::string config = reading.text("config");
  reading.flags.tree.erase("config");
  return config;
}

// `tune run` names the configurations of its package without their ending; in its repository they
// lie in recipes/configs. A copy of `tune cp` is an ordinary file.
std::string torchtune_configuration(std::string config, const CommandReading& reading) {
  if (!is_configuration(config)) config += ".yaml";
  std::string packaged = "recipes/configs/" + config;
  if (find_named_file(reading, config) || !find_named_file(reading, packaged)) return config;
  return packaged;
}

}  // namespace

void read_llama_factory_command(CommandReading& reading) {
  static constexpr auto kSpellings = std::to_array<Spelling>({
      {"base_model", "model_name_or_path"},  // of alpaca-lora and its heirs
      {"micro_batch_size", "per_device_train_batch_size"},
      {"lora_r", "lora_rank"},
      {"lora_target_modules", "lora_target"},
  });
  reading.rename(kSpellings);
  const std::string config = named_configuration(reading);
  if (!config.empty()) {
    read_with_file(config, reading);
  } else {
    read_as(FileFormat::kLlamaFactory, reading);
  }
}

void read_file_command(CommandReading& reading) {
  std::string config = named_configuration(reading);
  if (config.empty())
    throw Error(ErrorKind::kInput,
                fmt::format("{}: {} {} names no configuration file; add it", reading.file,
                            reading.launch.program, reading.launch.action));
  if (reading.launch.program == "tune") config = torchtune_configuration(config, reading);
  // Flags of the tools themselves.
  for (const char* key : {"launcher", "cloud", "sweep"}) reading.flags.tree.erase(key);
  read_with_file(config, reading);
}

}  // namespace memfathom
