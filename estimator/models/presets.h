// Presets: models by name, with the configurations their authors published, or the keys in which
// they differ from their library's defaults (grid_presets.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/document.h"

namespace memfathom {

struct Preset {
  std::string_view name;
  std::string_view description;  // one line
  std::string_view source;       // of the configuration
  std::string_view licence;      // of the published model
  std::int64_t parameters;       // 0: counted by building it
  bool is_partial;               // `config` has only the keys that differ from the defaults
  std::string_view config;       // JSON
};

// The presets of estimator/models/presets/*.json, in the order in which they are listed.
std::span<const Preset> presets();

// The configuration behind a name (hyphens, underscores, dots and case aside); nothing if the name
// is unknown or the preset's configuration is partial.
std::optional<Node> preset_config(std::string_view name);

bool is_preset(std::string_view name);  // of any kind of network

// The end of an error sentence about an unknown name, with the nearest known one.
std::string unknown_preset(std::string_view name);

// A Llama-shaped model of about so many parameters, for when only the size is known. Says what it
// assumed.
Node config_for_parameters(double parameters, std::vector<std::string>& assumptions);

}  // namespace memfathom
