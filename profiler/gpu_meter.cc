#include "profiler/gpu_meter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "core/error.h"
#include "kernels/devices/cuda_loader.h"

namespace memfathom {
namespace {

const GpuProcess* find(const std::vector<GpuProcess>& processes, std::int64_t pid) {
  const auto at = std::find_if(processes.begin(), processes.end(),
                               [&](const GpuProcess& process) { return process.pid == pid; });
  return at == processes.end() ? nullptr : &*at;
}

// The whole GPU's use from cudaMemGetInfo; 0 until there is a context.
class MemGetInfoMeter final : public MemoryMeter {
 public:
  MemGetInfoMeter(int index, std::function<bool()> has_context)
      : index_(index), has_context_(std::move(has_context)) {}
  Bytes used() const override {
    if (!has_context_()) return {};
    const CudaMemory memory = load_cuda_module().memory(index_);
    return memory.total - memory.free;
  }
  std::string metric() const override { return "mem-get-info"; }

 private:
  int index_;
  std::function<bool()> has_context_;
};

// Nullopt where the GPU shares the system's memory: it does not report its own.
std::optional<Bytes> reported_use(const Nvml::Gpu& gpu) {
  try {
    return gpu.used();
  } catch (const Error&) {
    return std::nullopt;
  }
}

class NvmlMeter final : public MemoryMeter {
 public:
  NvmlMeter(std::unique_ptr<Nvml> nvml, int index, std::function<bool()> has_context)
      : nvml_(std::move(nvml)),
        gpu_(nvml_->gpu(index)),
        before_(gpu_.processes()),
        device_before_(reported_use(gpu_)),
        pid_is_ambiguous_(!has_context() && find(before_, getpid()) != nullptr),
        by_cuda_(index, std::move(has_context)) {}

  // Before the context exists, NVML does not list this process: its use is 0, not the whole GPU's.
  // A process that is listed has a context, so a use of 0 means that the driver does not report it:
  // in a container, drivers 535.113.01 to 560.35.03 and later ones of the branches 535 and 550 list
  // the id of the container's namespace but look the memory up by the host's id (open-gpu-kernel-
  // modules, gpuFindClientInfoWithPidIterator in gpu_rmapi.c; _gpuMatchClientPid mends it in
  // 565.57.01). Integrated GPUs may report processes and not themselves, or the other way round.
  Bytes used() const override {
    const std::lock_guard lock(mutex_);
    const std::vector<GpuProcess> now = gpu_.processes();
    const GpuProcess* self = pid_is_ambiguous_ ? nullptr : find(now, getpid());
    if (self != nullptr && self->used.value_or(Bytes{}).count() > 0) {
      per_process_ = true;
      return *self->used;
    }
    if (per_process_) return Bytes{};
    // A process that starts and ends between two stages is only seen here. Where this process is
    // not listed, its own entry may carry another id and would look like another process's.
    if (self != nullptr && disturbance_.empty())
      disturbance_ = describe_other_processes(before_, now, getpid());
    if (!device_before_) return by_cuda_.used();
    return std::max(gpu_.used().value_or(*device_before_) - *device_before_, Bytes{});
  }
  std::string metric() const override {
    const std::lock_guard lock(mutex_);
    if (per_process_) return "nvml-process";
    return device_before_ ? "nvml-device" : by_cuda_.metric();
  }
  std::string disturbance() const override {
    const std::lock_guard lock(mutex_);
    // Other processes do not change this process's own figure.
    return per_process_ ? std::string() : disturbance_;
  }

 private:
  std::unique_ptr<Nvml> nvml_;
  Nvml::Gpu gpu_;
  std::vector<GpuProcess> before_;
  std::optional<Bytes> device_before_;
  // In a container NVML may report host process ids: an entry with our id that existed before our
  // context belongs to another process.
  bool pid_is_ambiguous_;
  MemGetInfoMeter by_cuda_;
  mutable std::mutex mutex_;
  mutable bool per_process_ = false;
  mutable std::string disturbance_;
};

}  // namespace

std::unique_ptr<MemoryMeter> make_gpu_meter(int index, std::function<bool()> has_context) {
  std::string why;
  if (std::unique_ptr<Nvml> nvml = Nvml::open(&why)) {
    try {
      return std::make_unique<NvmlMeter>(std::move(nvml), index, has_context);
    } catch (const Error&) {  // NVML does not have this GPU; CUDA will say what is wrong
    }
  }
  return std::make_unique<MemGetInfoMeter>(index, std::move(has_context));
}

std::string describe_other_processes(const std::vector<GpuProcess>& before,
                                     const std::vector<GpuProcess>& after, std::int64_t self) {
  for (const GpuProcess& process : after) {
    if (process.pid == self) continue;
    const GpuProcess* earlier = find(before, process.pid);
    if (earlier == nullptr) return fmt::format("process {} started using the device", process.pid);
    if (earlier->used != process.used)
      return fmt::format("process {} changed its memory use on the device", process.pid);
  }
  for (const GpuProcess& process : before) {
    if (process.pid != self && find(after, process.pid) == nullptr)
      return fmt::format("process {} stopped using the device", process.pid);
  }
  return {};
}

}  // namespace memfathom
