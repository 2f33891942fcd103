// Source: the origin of a number. Every reported number has one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/enum_names.h"

namespace memfathom {

enum class Source : std::uint8_t {
  kExact,      // accounting
  kMeasured,   // a profile of this environment
  kFitted,     // a coefficient fitted to such profiles
  kPublished,  // fitted to published measurements
  kDefault,    // a documented constant
};

template <>
inline constexpr auto kEnumNames<Source> =
    std::to_array<EnumName<Source>>({{Source::kExact, "exact"},
                                     {Source::kMeasured, "measured"},
                                     {Source::kFitted, "fitted"},
                                     {Source::kPublished, "published"},
                                     {Source::kDefault, "default"}});

const char* to_string(Source source);
std::optional<Source> parse_source(std::string_view text);

}  // namespace memfathom
