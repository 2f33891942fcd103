// Version numbers: "2.6.1+cu124" as one comparable number.
#pragma once

#include <charconv>
#include <string_view>

namespace memfathom {

// major * 100 + minor: "2.6.1" is 206. Nothing readable: 0.
inline int version_number(std::string_view text) {
  int major = 0;
  int minor = 0;
  const char* end = text.data() + text.size();
  const auto [after, failure] = std::from_chars(text.data(), end, major);
  if (failure != std::errc{}) return 0;
  if (after != end && *after == '.') std::from_chars(after + 1, end, minor);
  return major * 100 + minor;
}

}  // namespace memfathom
