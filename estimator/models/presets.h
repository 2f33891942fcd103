// Presets: models people ask about by name, as the configurations their authors published.
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
  std::string_view what;    // one line
  std::string_view config;  // JSON
};

// All of them: language models first, then encoders and those that see.
const std::vector<Preset>& presets();
std::span<const Preset> language_presets();
std::span<const Preset> encoder_presets();
std::span<const Preset> vision_language_presets();

// The configuration behind a name (hyphens, underscores, dots and case aside); nothing when
// unknown.
std::optional<Node> preset_config(std::string_view name);

bool is_preset(std::string_view name);  // of any kind of network

// The end of an error sentence about an unknown name, with the nearest known one.
std::string unknown_preset(std::string_view name);

// A Llama-shaped model of about so many parameters, for when only the size is known. Says what it
// assumed.
Node config_for_parameters(double parameters, std::vector<std::string>& assumptions);

}  // namespace memfathom
