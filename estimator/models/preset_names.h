// Preset names: one spelling for the many in which people write a model's name.
#pragma once

#include <string>
#include <string_view>

namespace memfathom {

// The name in lower case without hyphens, underscores, dots and blanks; of a name that people use
// for one of the presets, that preset's.
std::string normalized_preset(std::string_view name);

}  // namespace memfathom
