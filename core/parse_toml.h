// parse_toml: TOML as a tree; load_document calls it for files that are named so.
#pragma once

#include <string>
#include <string_view>

#include "core/document.h"

namespace memfathom {

// Throws Error(kInput) with file and line, as parse_yaml does.
Node parse_toml(std::string_view text, const std::string& file, int first_line = 1,
                const DocumentLimits& limits = {});

}  // namespace memfathom
