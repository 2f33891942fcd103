// ProcessWatch: the most memory that a running process and what it starts hold on one device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "profiler/nvml.h"

namespace memfathom {

// The process and its descendants, as /proc shows them now; empty once it is gone. A process that
// has ended but was not waited for is gone.
std::vector<std::int64_t> process_tree(std::int64_t pid);

struct WatchedPeak {
  Bytes bytes;
  int device = -1;     // of the GPUs; -1: this machine's own memory
  std::string metric;  // "nvml-process", "nvml-device", "rss"
};

class ProcessWatch {
 public:
  // Made before the process starts, or while it runs. With NVML every GPU is looked at; without
  // (null) resident memory is.
  explicit ProcessWatch(std::unique_ptr<Nvml> nvml);

  // Reads once; false once the process is gone.
  bool read(std::int64_t pid);
  int readings() const { return readings_; }
  const Nvml* nvml() const { return nvml_.get(); }

  // On the device where it was most: what one rank of a job took. Nothing when it was on none.
  std::optional<WatchedPeak> peak() const;
  // By how much the use of a whole GPU rose since this was made: for containers, where NVML lists
  // processes under numbers that nobody inside knows.
  std::optional<WatchedPeak> device_growth() const;

 private:
  void read_gpus(const std::vector<std::int64_t>& tree);
  void read_resident(const std::vector<std::int64_t>& tree);

  struct GpuUse {
    Bytes before, peak, most;  // most: of the whole GPU
  };
  std::unique_ptr<Nvml> nvml_;
  std::vector<GpuUse> gpus_;
  Bytes resident_;
  int readings_ = 0;
};

}  // namespace memfathom
