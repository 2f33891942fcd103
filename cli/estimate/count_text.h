// Count text: a number of parameters as people say it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace memfathom {

// 124439808 -> "124.4 M".
inline std::string count_text(std::int64_t count) {
  const double value = static_cast<double>(count);
  if (value >= 1e9) return fmt::format("{:.2f} B", value / 1e9);
  return value >= 1e6 ? fmt::format("{:.1f} M", value / 1e6) : fmt::format("{}", count);
}

}  // namespace memfathom
