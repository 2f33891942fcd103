#include "profiler/gpu_meter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
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

class NvmlMeter final : public MemoryMeter {
 public:
  NvmlMeter(std::unique_ptr<Nvml> nvml, int index, bool has_context)
      : nvml_(std::move(nvml)),
        index_(index),
        before_(nvml_->processes(index)),
        device_before_(nvml_->device_used(index)),
        pid_is_ambiguous_(!has_context && find(before_, getpid()) != nullptr) {}

  // Before the context exists, NVML does not list this process: its use is 0, not the whole GPU's.
  Bytes used() const override {
    const std::lock_guard lock(mutex_);
    const std::vector<GpuProcess> now = nvml_->processes(index_);
    const GpuProcess* self = pid_is_ambiguous_ ? nullptr : find(now, getpid());
    if (self != nullptr && self->used) {
      per_process_ = true;
      // A process that starts and ends between two stages is only seen here.
      if (disturbance_.empty()) disturbance_ = describe_other_processes(before_, now, getpid());
      return *self->used;
    }
    if (per_process_) return Bytes{};
    return std::max(nvml_->device_used(index_) - device_before_, Bytes{});
  }
  std::string metric() const override {
    const std::lock_guard lock(mutex_);
    return per_process_ ? "nvml-process" : "nvml-device";
  }
  std::string disturbance() const override {
    const std::lock_guard lock(mutex_);
    // Where process ids are hidden, our own entry looks like another process's.
    if (!per_process_ || !disturbance_.empty()) return disturbance_;
    return describe_other_processes(before_, nvml_->processes(index_), getpid());
  }

 private:
  std::unique_ptr<Nvml> nvml_;
  int index_;
  std::vector<GpuProcess> before_;
  Bytes device_before_;
  // In a container NVML may report host process ids: an entry with our id that existed before our
  // context belongs to another process.
  bool pid_is_ambiguous_;
  mutable std::mutex mutex_;
  mutable bool per_process_ = false;
  mutable std::string disturbance_;
};

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

}  // namespace

std::unique_ptr<MemoryMeter> make_gpu_meter(int index, std::function<bool()> has_context) {
  std::string why;
  if (std::unique_ptr<Nvml> nvml = Nvml::open(&why)) {
    try {
      return std::make_unique<NvmlMeter>(std::move(nvml), index, has_context());
    } catch (const Error&) {  // GPUs that share system memory do not report their own
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
