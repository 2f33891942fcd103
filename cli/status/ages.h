// ages: times of the database as seconds, and durations in days.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

namespace memfathom {

inline std::int64_t seconds_now() { return static_cast<std::int64_t>(std::time(nullptr)); }

// Seconds since 1970 of "2026-04-17T09:30:00Z"; nullopt for any other form.
inline std::optional<std::int64_t> seconds_of(const std::string& time) {
  std::tm parts{};
  const char* const end = strptime(time.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return static_cast<std::int64_t>(timegm(&parts));
}

// "12 d", or hours below two days; a clock that is behind shows "0 h".
inline std::string age_text(std::int64_t seconds) {
  constexpr std::int64_t kHour = 3600;
  constexpr std::int64_t kDay = 24 * kHour;
  if (seconds < 0) seconds = 0;
  return seconds < 2 * kDay ? fmt::format("{} h", seconds / kHour)
                            : fmt::format("{} d", seconds / kDay);
}

}  // namespace memfathom
