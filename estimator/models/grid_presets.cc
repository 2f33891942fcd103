#include "estimator/models/grid_presets.h"

#include <string>
#include <vector>

#include "estimator/models/preset_names.h"

namespace memfathom {

std::span<const Preset* const> grid_presets() {
  static const std::vector<const Preset*> kAll = [] {
    std::vector<const Preset*> all;
    for (const Preset& preset : presets()) {
      if (preset.is_partial) all.push_back(&preset);
    }
    return all;
  }();
  return kAll;
}

std::optional<Node> partial_preset_config(std::string_view normalized_name) {
  for (const Preset* preset : grid_presets()) {
    if (normalized_preset(preset->name) == normalized_name)
      return parse_json(preset->config, std::string(preset->name));
  }
  return std::nullopt;
}

}  // namespace memfathom
