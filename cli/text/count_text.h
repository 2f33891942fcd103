// Count text: human-readable numbers.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "core/bytes.h"

namespace memfathom {

// 124439808 -> "124.4 M".
inline std::string count_text(std::int64_t count) {
  const double value = static_cast<double>(count);
  if (value >= 1e9) return fmt::format("{:.2f} B", value / 1e9);
  return value >= 1e6 ? fmt::format("{:.1f} M", value / 1e6) : fmt::format("{}", count);
}

// 1 of 4 -> "25.0 %"; empty where the whole is nothing.
inline std::string share_text(Bytes part, Bytes whole) {
  if (whole.count() <= 0) return "";
  return fmt::format(
      "{:.1f} %", 100.0 * static_cast<double>(part.count()) / static_cast<double>(whole.count()));
}

// A probability in whole percent; never 0 % or 100 %, because measurements cannot prove either.
inline std::string probability_text(double probability) {
  if (probability < 0.01) return "< 1 %";
  return probability > 0.99 ? "> 99 %" : fmt::format("{:.0f} %", 100 * probability);
}

}  // namespace memfathom
