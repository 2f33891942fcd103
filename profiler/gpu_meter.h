// GpuMeter: device memory of this process by NVML, or of the whole GPU where only that is told.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "profiler/meter.h"
#include "profiler/nvml.h"

namespace memfathom {

// With NVML: this process's own figure; in a container that hides process ids, the change of the
// whole GPU. Without NVML, or where it tells nothing of memory: cudaMemGetInfo of the whole GPU,
// so the GPU must be otherwise idle; asking it would make a context, so it is not asked, and reads
// 0, until `has_context` says that there is one.
std::unique_ptr<MemoryMeter> make_gpu_meter(int index, std::function<bool()> has_context);

// Whether processes other than `self` came or changed between two lists: why a sample is disturbed,
// or nothing.
std::string describe_other_processes(const std::vector<GpuProcess>& before,
                                     const std::vector<GpuProcess>& after, std::int64_t self);

}  // namespace memfathom
