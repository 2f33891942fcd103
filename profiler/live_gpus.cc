#include "profiler/live_gpus.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "core/architecture.h"
#include "core/error.h"
#include "core/gpus.h"
#include "profiler/campaign.h"
#include "profiler/nvml.h"
#include "profiler/probe_target.h"

namespace memfathom {
namespace {

constexpr std::chrono::seconds kQueryTimeout{60};

void name_gpu(LiveGpu& live) {
  const Gpu* known = find_gpu_of_driver(live.product, live.total);
  if (known == nullptr) return;
  live.gpu = std::string(known->name);
  if (live.compute_capability == 0) live.compute_capability = known->compute_capability();
}

LiveGpu by_nvml(const Nvml& nvml, int index) {
  const GpuStatus status = nvml.status(index);
  LiveGpu live;
  live.device = fmt::format("cuda:{}", index);
  live.product = status.name;
  live.compute_capability = status.compute_capability;
  live.driver = status.driver;
  live.total = status.total;
  live.used = status.total - status.free;  // includes the driver's reservation
  live.reserved = status.reserved;
  live.processes = status.processes;
  name_gpu(live);
  return live;
}

LiveGpu by_cuda(int index) {
  LiveGpu live;
  live.device = fmt::format("cuda:{}", index);
  const ProbeReply reply = [&] {
    try {
      return query_environment(own_probe_program(), live.device, kQueryTimeout);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}; name a GPU with --gpu instead", error.what()));
    }
  }();
  live.product = reply.environment.gpu;
  live.compute_capability = compute_capability(reply.environment.architecture);
  live.total = reply.environment.memory_total;
  live.used = live.total - reply.memory_free;
  name_gpu(live);
  return live;
}

}  // namespace

LiveGpu MachineGpus::find(const std::string& device) const {
  const DeviceName name = parse_device(device);
  if (name.kind != DeviceKind::kCuda) {
    throw Error(ErrorKind::kInput,
                fmt::format("target.device is \"{}\"; write cuda:0, or name a GPU with target.gpu",
                            device));
  }
  std::string why;
  if (const std::unique_ptr<Nvml> nvml = Nvml::open(&why)) return by_nvml(*nvml, name.index);
  return by_cuda(name.index);
}

std::optional<LiveGpu> MachineGpus::first() const {
  std::string why;
  const std::unique_ptr<Nvml> nvml = Nvml::open(&why);
  try {
    if (!nvml || nvml->device_count() == 0) return std::nullopt;
    return by_nvml(*nvml, 0);
  } catch (const Error&) {
    return std::nullopt;  // the GPU was not requested explicitly
  }
}

}  // namespace memfathom
