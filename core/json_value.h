// parse_json_value: JSON whose locations nobody needs (records, messages between processes), parsed
// within the limits of a document. What people write is read by parse_json (core/document.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/document.h"

namespace memfathom {

// Throws Error(kInput) naming `file` for text that is no JSON, too long or nested too deeply.
nlohmann::json parse_json_value(std::string_view text, const std::string& file,
                                const DocumentLimits& limits = {});

}  // namespace memfathom
