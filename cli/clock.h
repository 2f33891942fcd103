// The current time in the database's format.
#pragma once

#include <ctime>
#include <string>

namespace memfathom {

// ISO 8601, UTC: "2026-04-17T09:30:00Z".
inline std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace memfathom
