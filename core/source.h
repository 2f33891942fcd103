// Source: the origin of a number. Every reported number has one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace memfathom {

enum class Source : std::uint8_t {
  kExact,      // accounting
  kMeasured,   // a profile of this environment
  kFitted,     // a coefficient fitted to such profiles
  kPublished,  // fitted to published measurements
  kDefault,    // a documented constant
};

const char* to_string(Source source);
std::optional<Source> parse_source(std::string_view text);

}  // namespace memfathom
