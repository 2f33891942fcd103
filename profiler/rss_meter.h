// RssMeter: the resident set of this process, from /proc.
#pragma once

#include "profiler/meter.h"

namespace memfathom {

class RssMeter final : public MemoryMeter {
 public:
  // Throws Error(kEnvironment) where /proc does not tell.
  RssMeter();

  Bytes used() const override;
  std::optional<Bytes> high_water() const override;
  std::string metric() const override { return "rss"; }
  // Pages that were swapped out are missing from the resident set.
  std::string disturbance() const override;
};

// A line "VmRSS:  2200 kB" of a status file; nothing when there is no such line.
std::optional<Bytes> status_bytes(const std::string& status, std::string_view key);

}  // namespace memfathom
