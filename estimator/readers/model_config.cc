#include "estimator/readers/model_config.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "estimator/models/presets.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {

Node model_config(const Node& holder) {
  if (const Node* config = value_at(holder, "model.config")) {
    if (!config->is_string()) return *config;
    std::filesystem::path path = config->as_string();
    const std::string file = config->file();
    if (path.is_relative() && !file.empty() && file != "-")
      path = std::filesystem::path(file).parent_path() / path;
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) path /= "config.json";
    return load_document(path.string());
  }
  const Node* preset = value_at(holder, "model.preset");
  if (preset == nullptr || !preset->is_string()) return {};
  return preset_config(preset->as_string()).value_or(Node());
}

}  // namespace memfathom
