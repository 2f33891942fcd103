// GpuMeter: this process's device memory from NVML, or the whole GPU's where NVML hides processes.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "profiler/meter.h"
#include "profiler/nvml.h"

namespace memfathom {

// With NVML: this process's memory or, where the driver does not report it (in containers, before
// 565.57.01), the growth of the whole GPU's use. That includes other processes: run_checked_probe()
// checks that the GPU returns to its earlier use after the probe. Where NVML reports neither, as on
// some integrated GPUs: cudaMemGetInfo of the whole GPU, which must be otherwise idle. That call
// would create a context, so the meter reads 0 until `has_context` is true.
std::unique_ptr<MemoryMeter> make_gpu_meter(int index, std::function<bool()> has_context);

// The reason a sample is disturbed: a process other than `self` that started, stopped or changed
// its use between two lists. Empty if there is none.
std::string describe_other_processes(const std::vector<GpuProcess>& before,
                                     const std::vector<GpuProcess>& after, std::int64_t self);

}  // namespace memfathom
