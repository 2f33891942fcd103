// Whether a file says that a later version of memfathom wrote it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/parse_number.h"

namespace memfathom {

// "memfathom.trace/2" is newer than "memfathom.trace/1".
inline bool is_newer_schema(std::string_view found, std::string_view ours) {
  const std::size_t slash = ours.rfind('/');
  if (slash == std::string_view::npos || found.substr(0, slash + 1) != ours.substr(0, slash + 1))
    return false;
  const auto version = parse_number<std::int64_t>(found.substr(slash + 1));
  return version && *version > parse_number<std::int64_t>(ours.substr(slash + 1)).value_or(0);
}

}  // namespace memfathom
