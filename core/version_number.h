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

// With the third number: "0.43.2" is 4302. Where it is left out the last of the line is meant.
inline int release_number(std::string_view text) {
  const int version = version_number(text);
  if (version == 0) return 0;
  constexpr int kLast = 99;
  int patch = kLast;
  const std::size_t second = text.find('.', text.find('.') + 1);
  if (text.find('.') != std::string_view::npos && second != std::string_view::npos)
    std::from_chars(text.data() + second + 1, text.data() + text.size(), patch);
  return version * 100 + patch;
}

}  // namespace memfathom
