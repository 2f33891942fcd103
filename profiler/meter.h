// MemoryMeter: reads how much of a device's memory is in use, and says which figure that is.
#pragma once

#include <optional>
#include <string>

#include "core/bytes.h"

namespace memfathom {

// Readings may come from the sampler's thread while the device works: implementations are safe for
// that.
class MemoryMeter {
 public:
  virtual ~MemoryMeter() = default;

  virtual Bytes used() const = 0;
  // The highest use since the process began, where something keeps it: no sampler sees more.
  virtual std::optional<Bytes> high_water() const { return std::nullopt; }
  // "rss", "nvml-process", "nvml-device", "mem-get-info", "virtual": part of the sample.
  virtual std::string metric() const = 0;
  // Why the readings since the meter was made cannot be trusted; empty when they can.
  virtual std::string disturbance() const { return {}; }
};

}  // namespace memfathom
