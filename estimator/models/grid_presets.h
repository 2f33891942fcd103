// Grid presets: models over images, videos and fields by name. Their libraries publish no whole
// configuration, so a preset has only the keys that differ from the defaults of its family.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/document.h"
#include "estimator/models/presets.h"

namespace memfathom {

std::span<const Preset* const> grid_presets();

// The keys of such a preset that differ from its library's defaults; nothing if there is none of
// that name (normalized).
std::optional<Node> partial_preset_config(std::string_view normalized_name);

}  // namespace memfathom
