// MachineGpus: the GPUs of this machine, from NVML or else from a child process that uses CUDA.
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
