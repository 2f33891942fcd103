#include "estimator/models/factory.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "estimator/models/grid_presets.h"
#include "estimator/models/preset_names.h"
#include "estimator/models/presets.h"
#include "estimator/models/registry.h"
#include "estimator/models/stack/stack_network.h"
#include "estimator/models/stored/stored_network.h"
#include "estimator/models/stored/stored_tensors.h"

namespace memfathom {
namespace {

// `config` is inline, or names a file (or a folder with a config.json), relative to the file that
// names it.
Node load_config(const Node& config) {
  if (config.is_map()) return config;
  std::filesystem::path path = config.as_string();
  const std::string file = config.file();
  if (path.is_relative() && !file.empty() && file != "-")
    path = std::filesystem::path(file).parent_path() / path;
  std::error_code unreadable;  // said by whoever opens it
  if (std::filesystem::is_directory(path, unreadable)) path /= "config.json";
  return load_document(path.string());
}

// The folder that a configuration was read from; empty for one that stands in the job itself.
std::filesystem::path folder_of(const Node& config) {
  const std::filesystem::path file = config.file();
  return file.filename() == "config.json" ? file.parent_path() : std::filesystem::path();
}

std::unique_ptr<Network> from_config(Builder& builder, const Node& config,
                                     const ModelSettings& settings,
                                     std::vector<std::string>& assumptions) {
  if (std::unique_ptr<Network> network = make_from_family(builder, config, settings, assumptions))
    return network;
  if (!config.file().empty()) {
    const std::vector<StoredTensor> tensors = stored_tensors(folder_of(config));
    if (!tensors.empty())
      return make_stored_network(builder, config, tensors, settings, assumptions);
  }
  const Node* type = config.find("model_type");
  if (type == nullptr) type = config.find("_class_name");
  if (type == nullptr)
    config.refuse(
        "it has no model_type (transformers) or _class_name (diffusers), so its family is unknown, "
        "and there is no model.safetensors (or its index) beside it to take the shapes from");
  type->refuse(
      "this family is not known, and there is no model.safetensors (or its index) beside the "
      "config to take the shapes from; `memfathom models` lists what is known, `model.layers` "
      "describes any other, and `model.trace` replays a step that was recorded");
}

}  // namespace

std::unique_ptr<Network> make_network(Builder& builder, const Node& model,
                                      const ModelSettings& given,
                                      std::vector<std::string>& assumptions) {
  ModelSettings settings = given;
  if (const Node* part = model.find("part"))
    settings.part = static_cast<ModelPart>(part->as_choice({"whole", "encoder", "decoder"}));
  if (model.find("layers") != nullptr) return make_stack_network(builder, model, settings);
  if (const Node* config = model.find("config"))
    return from_config(builder, load_config(*config), settings, assumptions);
  if (const Node* preset = model.find("preset")) {
    if (const std::optional<Node> config = preset_config(preset->as_string()))
      return from_config(builder, *config, settings, assumptions);
    const std::string name = normalized_preset(preset->as_string());
    if (std::unique_ptr<Network> network = make_grid_preset(builder, name, model, settings))
      return network;
    preset->refuse(unknown_preset(preset->as_string()));
  }
  if (const Node* parameters = model.find("parameters")) {
    const Node config = config_for_parameters(parameters->as_number(1e3, 1e15), assumptions);
    return from_config(builder, config, settings, assumptions);
  }
  model.refuse("this way of naming a model cannot be built on its own");
}

std::optional<Node> model_config(const Node& model, std::vector<std::string>& assumptions) {
  if (const Node* config = model.find("config")) return load_config(*config);
  if (const Node* preset = model.find("preset")) return preset_config(preset->as_string());
  if (const Node* parameters = model.find("parameters")) {
    return config_for_parameters(parameters->as_number(1e3, 1e15), assumptions);
  }
  return std::nullopt;
}

}  // namespace memfathom
