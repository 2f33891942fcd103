// Device report: the devices of this machine, their free memory and processes; what `status` shows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"
#include "profiler/nvml.h"

namespace memfathom {

struct DeviceReport {
  std::string name;  // "cuda:0", "cpu"
  Environment environment;
  Bytes total;
  std::optional<Bytes> used, free, reserved;
  std::vector<GpuProcess> processes;
  std::string memory_source;  // "nvml", "cudaMemGetInfo", "/proc"
  std::string problem;        // why it cannot be used; empty if usable
};

struct MachineReport {
  std::vector<DeviceReport> devices;
  std::vector<std::string> notes;  // "no GPU: ..."
};

// Reports missing hardware or drivers as notes; never throws for them.
MachineReport report_machine();

}  // namespace memfathom
