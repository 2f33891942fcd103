// ProcessWatch: the peak memory of a running process and its descendants on one device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "profiler/nvml.h"

namespace memfathom {

// The process and its descendants in /proc now; empty once it has ended. A zombie counts as ended.
std::vector<std::int64_t> process_tree(std::int64_t pid);

struct WatchedPeak {
  Bytes bytes;
  int device = -1;     // GPU index; -1: host memory
  std::string metric;  // "nvml-process", "nvml-device", "rss"
};

class ProcessWatch {
 public:
  // Create it before the process starts or while it runs. With NVML it watches every GPU; without
  // (null), resident memory.
  explicit ProcessWatch(std::unique_ptr<Nvml> nvml);

  // Takes one reading; false once the process has ended.
  bool read(std::int64_t pid);
  int readings() const { return readings_; }
  const Nvml* nvml() const { return nvml_.get(); }

  // The peak on the device with the highest use: one rank of a job. Empty if no device was used.
  std::optional<WatchedPeak> peak() const;
  // The growth of the whole GPU's use since construction. For containers, where NVML reports host
  // process ids.
  std::optional<WatchedPeak> device_growth() const;

 private:
  void read_gpus(const std::vector<std::int64_t>& tree);
  void read_resident(const std::vector<std::int64_t>& tree);

  struct GpuUse {
    Bytes peak;                   // of the process and its descendants
    std::optional<Bytes> before;  // of the whole GPU; none if it does not report its use
    Bytes most;
    Bytes growth() const { return before ? most - *before : Bytes{}; }
  };
  std::unique_ptr<Nvml> nvml_;
  std::vector<GpuUse> gpus_;
  Bytes resident_;
  int readings_ = 0;
};

}  // namespace memfathom
