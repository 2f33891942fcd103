// MachineGpus: the GPUs of this machine by NVML, else by a child process that opens them with CUDA.
#pragma once

#include <optional>
#include <string>

#include "core/live_gpu.h"

namespace memfathom {

class MachineGpus : public GpuInventory {
 public:
  LiveGpu find(const std::string& device) const override;
  std::optional<LiveGpu> first() const override;
};

}  // namespace memfathom
