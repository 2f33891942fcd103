// MemoryMeter: reads how much of a device's memory is in use, and names the metric.
#pragma once

#include <optional>
#include <string>

#include "core/bytes.h"

namespace memfathom {

// The sampler's thread may read while the device works: implementations are thread-safe.
class MemoryMeter {
 public:
  virtual ~MemoryMeter() = default;

  virtual Bytes used() const = 0;
  // The peak use since the process started, if the system records it; more exact than sampling.
  virtual std::optional<Bytes> high_water() const { return std::nullopt; }
  // "rss", "nvml-process", "nvml-device", "mem-get-info", "virtual": stored with the sample.
  virtual std::string metric() const = 0;
  // Why the readings since construction are not reliable; empty if they are.
  virtual std::string disturbance() const { return {}; }
};

}  // namespace memfathom
