// parse_number: parses a text that is only a number, independent of the locale.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/from_chars_real.h"

namespace memfathom {

// Nullopt for anything else, for values out of range and for non-finite values.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = [&] {
    if constexpr (std::is_floating_point_v<Number>)
      return from_chars_real(text.data(), end, value);
    else
      return std::from_chars(text.data(), end, value);
  }();
  if (failure != std::errc{} || stop != end) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

}  // namespace memfathom
