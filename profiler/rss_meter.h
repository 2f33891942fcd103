// RssMeter: the resident set of this process, from /proc.
#pragma once

#include "profiler/meter.h"

namespace memfathom {

class RssMeter final : public MemoryMeter {
 public:
  // Throws Error(kEnvironment) if /proc does not report it.
  RssMeter();

  Bytes used() const override;
  std::optional<Bytes> high_water() const override;
  std::string metric() const override { return "rss"; }
  // Swapped-out pages are not part of the resident set.
  std::string disturbance() const override;
};

// The value of a line "VmRSS:  2200 kB" of a status file; nullopt if there is no such line.
std::optional<Bytes> status_bytes(const std::string& status, std::string_view key);

}  // namespace memfathom
