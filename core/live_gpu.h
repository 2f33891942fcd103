// LiveGpu: the current state of a GPU of this machine: memory in use, and the processes that use
// it.
//
// GpuInventory is the estimator's interface to the machine's GPUs. profiler/live_gpus.h implements
// it with NVML; tests and programs without GPUs provide their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"

namespace memfathom {

struct GpuProcess {
  std::int64_t pid = 0;
  std::string name;           // empty if it cannot be queried
  std::optional<Bytes> used;  // unknown on some systems

  bool operator==(const GpuProcess&) const = default;
};

struct LiveGpu {
  std::string device;          // "cuda:0"
  std::string product;         // the driver's name for it
  std::string gpu;             // its name in `memfathom gpus`; empty if unlisted
  int compute_capability = 0;  // 0: unknown
  std::string driver;          // empty: unknown
  Bytes total, used;
  std::optional<Bytes> reserved;  // the driver's reservation, part of `used`
  std::vector<GpuProcess> processes;

  // "the target is cuda:0, NVIDIA A100-SXM4-40GB: 20.3 GiB of 40.0 GiB are in use (python 4711:
  // 20.1 GiB)".
  std::string sentence() const;
};

// "python (pid 7) 2.00 GiB", one for each process.
std::vector<std::string> process_descriptions(const LiveGpu& gpu);

class GpuInventory {
 public:
  virtual ~GpuInventory() = default;
  // The GPU "cuda:N". Throws Error(kEnvironment) if it does not exist, Error(kInput) for another
  // kind of device.
  virtual LiveGpu find(const std::string& device) const = 0;
  // The first GPU, if there is one; cheap enough to try in every estimate.
  virtual std::optional<LiveGpu> first() const = 0;
};

}  // namespace memfathom
