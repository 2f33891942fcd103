#include "cli/status/device_report.h"

#include <fmt/format.h>

#include <chrono>

#include "core/error.h"
#include "kernels/devices/cuda_loader.h"
#include "profiler/campaign.h"

namespace memfathom {
namespace {

constexpr std::chrono::seconds kAskLimit{60};

// Queries each device in a probe process, because a driver may crash.
void ask(DeviceReport& device) {
  try {
    const ProbeReply reply = query_environment(own_probe_program(), device.name, kAskLimit);
    device.environment = reply.environment;
    device.free = reply.memory_free;
    device.total = reply.environment.memory_total;
    device.used = device.total - reply.memory_free;
  } catch (const Error& error) {
    device.problem = error.what();
  }
}

DeviceReport gpu_report(int index, const Nvml* nvml) {
  DeviceReport device;
  device.name = fmt::format("cuda:{}", index);
  device.memory_source = "cudaMemGetInfo";
  ask(device);
  if (nvml == nullptr) return device;
  const GpuStatus status = nvml->status(index);
  device.memory_source = status.shares_system_memory ? "/proc" : "nvml";
  device.environment.gpu = status.name;
  add_gpu_status(device.environment, status);
  if (!device.problem.empty()) {  // a GPU without our module may still have a calibration
    device.environment.memory_total = status.total;
    if (status.compute_capability > 0)
      device.environment.architecture = fmt::format("sm_{}", status.compute_capability);
  }
  device.total = status.total;
  device.used = status.used;
  device.free = status.free;
  device.reserved = status.reserved;
  device.processes = status.processes;
  return device;
}

void add_gpus(MachineReport& machine) {
  std::string why;
  const std::unique_ptr<Nvml> nvml = Nvml::open(&why);
  int count = 0;
  try {
    count = nvml ? nvml->device_count() : load_cuda_module().device_count();
  } catch (const Error& error) {
    machine.notes.push_back(fmt::format("no GPU: {}; {}", error.what(), why));
    return;
  }
  if (count == 0) machine.notes.emplace_back("no GPU: the driver reports none");
  if (!nvml && count > 0)
    machine.notes.push_back(
        fmt::format("{}: memory is for the whole GPU; per-process usage is unavailable", why));
  for (int index = 0; index < count; ++index) {
    try {
      machine.devices.push_back(gpu_report(index, nvml.get()));
    } catch (const Error& error) {
      machine.notes.push_back(fmt::format("cuda:{}: {}", index, error.what()));
    }
  }
}

}  // namespace

MachineReport report_machine() {
  MachineReport machine;
  add_gpus(machine);
  DeviceReport cpu;
  cpu.name = "cpu";
  cpu.memory_source = "/proc";
  ask(cpu);
  machine.devices.push_back(std::move(cpu));
  return machine;
}

}  // namespace memfathom
