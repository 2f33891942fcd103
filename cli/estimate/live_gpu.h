// LiveGpu: a GPU of this machine as it is now: how much of it is in use, and by whom.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"
#include "estimator/job/job.h"
#include "profiler/nvml.h"

namespace memfathom {

struct LiveGpu {
  std::string device;          // "cuda:0"
  std::string product;         // what the driver calls it
  std::string gpu;             // its name in `memfathom gpus`; empty when it is not there
  int compute_capability = 0;  // 0: unknown
  std::string driver;          // empty: unknown
  Bytes total, used;
  std::optional<Bytes> reserved;  // of `used`: what the driver keeps for itself
  std::vector<GpuProcess> processes;

  // "cuda:0, NVIDIA A100-SXM4-40GB: 20.3 GiB of 40.0 GiB are in use (python 4711: 20.1 GiB)".
  std::string sentence() const;
};

// The GPU "cuda:N", by NVML, else by a child process that opens it with CUDA. Throws
// Error(kEnvironment) when it is not there, Error(kInput) for another kind of device.
LiveGpu live_gpu(const std::string& device);

// The first GPU, where NVML is installed and there is one: cheap enough to try in every estimate.
std::optional<LiveGpu> first_live_gpu();

// The job on that GPU: its name, its capacity and what others use of it, wherever the job does not
// say otherwise.
Job with_live_gpu(const LiveGpu& gpu, Job job);

}  // namespace memfathom
