#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

Node path_node(const fs::path& path) {
  return Node::string(fs::absolute(path).lexically_normal().string());
}

// A diffusers pipeline: what is denoised with is trained, what encodes is frozen.
Reading read_pipeline(const fs::path& folder) {
  const Node index = load_document((folder / "model_index.json").string());
  Reading reading{
      (folder / "model_index.json").string(), FileFormat::kModelConfig, index, {}, {}, {}, {}};
  Node modules = Node::list();
  for (const char* name :
       {"transformer", "unet", "text_encoder", "text_encoder_2", "text_encoder_3"}) {
    const fs::path config = folder / name / "config.json";
    if (!fs::exists(config)) continue;
    Node model = Node::map();
    model.set("config", path_node(config));
    Node module = Node::map();
    module.set("name", Node::string(name));
    module.set("model", std::move(model));
    const bool denoises =
        std::string_view(name) == "transformer" || std::string_view(name) == "unet";
    module.set("train", Node::string(denoises ? "full" : "frozen"));
    if (!denoises) module.set("no_grad", Node::boolean(true));
    modules.append(std::move(module));
  }
  if (modules.items().empty())
    index.refuse(
        "none of its parts (transformer, unet, text_encoder) has a config.json beside it; give the "
        "whole folder");
  reading.set("model.modules", std::move(modules));
  if (fs::exists(folder / "vae"))
    reading.not_modelled.push_back(
        fmt::format("{}: the VAE, which encodes before training in most scripts", reading.file));
  return reading;
}

}  // namespace

void read_model_config(Reading& reading) {
  if (reading.file.empty()) {
    reading.set("model.config", reading.content);
  } else {
    reading.set("model.config", path_node(reading.file));
  }
  const Node* dtype = value_at(reading.content, "torch_dtype");
  if (dtype == nullptr) dtype = value_at(reading.content, "dtype");
  if (dtype == nullptr || !dtype->is_string()) return;
  static constexpr std::array<std::string_view, 3> kKnown{"float32", "bfloat16", "float16"};
  if (std::find(kKnown.begin(), kKnown.end(), dtype->as_string()) == kKnown.end()) return;
  reading.set("training.precision", *dtype);
}

void read_adapter(Reading& reading) {
  const Node& tree = reading.content;
  const Node& type = tree.at("peft_type");
  if (!type.is_string() || type.as_string() != "LORA")
    type.refuse("only LORA adapters are modelled; describe others with model.modules");
  reading.set("training.lora.rank", Node::integer(tree.at("r").as_int(1)));
  if (const Node* targets = value_at(tree, "target_modules"))
    reading.set("training.lora.targets", *targets);
  if (const Node* dropout = value_at(tree, "lora_dropout"))
    reading.set("training.lora.dropout", *dropout);
  if (const Node* base = value_at(tree, "base_model_name_or_path");
      base != nullptr && base->is_string())
    reading.base_model = base->as_string();
  static constexpr std::array<std::string_view, 5> kNotModelled{
      "use_dora", "modules_to_save", "rank_pattern", "layers_to_transform",
      "trainable_token_indices"};
  list_not_modelled(kNotModelled, reading);
}

namespace {

// A DeepSpeed configuration that another file names or holds.
void add_deepspeed(const Reading& reading, std::string_view key, std::vector<Reading>& readings) {
  const Node* deepspeed = value_at(reading.content, key);
  if (deepspeed == nullptr) return;
  if (deepspeed->is_map()) {
    readings.push_back(read_tree(*deepspeed, FileFormat::kDeepSpeed));
    return;
  }
  fs::path path = deepspeed->as_string();
  const fs::path beside = fs::path(reading.file).parent_path() / path;
  std::error_code ignored;
  if (path.is_relative() && fs::exists(beside, ignored)) path = beside;
  readings.push_back(read_tree(load_document(path.string()), FileFormat::kDeepSpeed));
}

std::vector<Reading> read_file(const std::string& path) {
  const Node tree = load_document(path);
  std::vector<Reading> readings{read_tree(tree, detect_format(tree))};
  switch (readings.front().format) {
    case FileFormat::kTrainingArguments:
    case FileFormat::kAxolotl:
      add_deepspeed(Reading(readings.front()), "deepspeed", readings);
      break;
    case FileFormat::kAccelerate:
      add_deepspeed(Reading(readings.front()), "deepspeed_config.deepspeed_config_file", readings);
      break;
    default: break;
  }
  return readings;
}

}  // namespace

std::vector<Reading> read_path(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return read_file(path);
  const fs::path folder(path);
  if (fs::exists(folder / "model_index.json")) return {read_pipeline(folder)};
  std::vector<Reading> readings;
  for (const char* name : {"config.json", "adapter_config.json"}) {
    if (!fs::exists(folder / name)) continue;
    const Node tree = load_document((folder / name).string());
    readings.push_back(read_tree(tree, detect_format(tree)));
  }
  if (readings.empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: this folder has no config.json, adapter_config.json or "
                            "model_index.json; name a file in it",
                            path));
  }
  return readings;
}

}  // namespace memfathom
