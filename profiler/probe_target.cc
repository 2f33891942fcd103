#include "profiler/probe_target.h"

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "core/error.h"
#include "kernels/devices/cpu/open.h"
#include "kernels/devices/cuda_loader.h"
#include "kernels/devices/dry/dry_device.h"
#include "profiler/gpu_meter.h"
#include "profiler/limited_segments.h"
#include "profiler/rss_meter.h"
#include "profiler/virtual_gpu.h"

namespace memfathom {
namespace {

class CpuTarget final : public ProbeTarget {
 public:
  explicit CpuTarget(Bytes ceiling) : ceiling_(ceiling) {}

  const MemoryMeter& meter() const override { return meter_; }
  void open() override {
    // Threads that spin while waiting slow down a busy machine further.
    setenv("OMP_WAIT_POLICY", "passive", 0);
    device_ = open_cpu_device();
    memory_.emplace(device_->memory(), ceiling_);
  }
  Device& device() override { return *device_; }
  const WorkspaceModel& workspaces() override { return device_->workspaces(); }
  SegmentSource& memory() override { return *memory_; }
  Environment environment() override { return device_->environment(); }
  Bytes memory_free() override { return device_->memory().capacity().value_or(Bytes{}); }
  Library convolutions() const override { return Library::kOnednn; }
  Library transforms() const override { return Library::kFftw; }

 private:
  RssMeter meter_;
  Bytes ceiling_;
  std::unique_ptr<Device> device_;
  std::optional<LimitedSegments> memory_;
};

class CudaTarget final : public ProbeTarget {
 public:
  CudaTarget(int index, Bytes ceiling)
      : index_(index),
        ceiling_(ceiling),
        meter_(make_gpu_meter(index, [this] { return has_context_.load(); })) {}

  const MemoryMeter& meter() const override { return *meter_; }
  void open() override {
    device_ = open_cuda_device(index_);
    has_context_ = true;
    memory_.emplace(device_->memory(), ceiling_);
  }
  Device& device() override { return *device_; }
  const WorkspaceModel& workspaces() override { return device_->workspaces(); }
  SegmentSource& memory() override { return *memory_; }
  Environment environment() override {
    Environment environment = device_->environment();
    std::string why;
    const std::unique_ptr<Nvml> nvml = Nvml::open(&why);
    if (!nvml) return environment;
    try {
      add_gpu_status(environment, nvml->status(index_));
    } catch (const Error&) {  // use what CUDA reports
    }
    return environment;
  }
  Bytes memory_free() override { return load_cuda_module().memory(index_).free; }
  std::int64_t resident_threads() override { return load_cuda_module().resident_threads(index_); }

 private:
  int index_;
  Bytes ceiling_;
  std::atomic<bool> has_context_ = false;
  std::unique_ptr<MemoryMeter> meter_;
  std::unique_ptr<Device> device_;
  std::optional<LimitedSegments> memory_;
};

// The dry device combined with a simulated GPU's constants.
class VirtualTarget final : public ProbeTarget, private MemoryMeter {
 public:
  VirtualTarget(const std::string& name, Bytes ceiling, std::uint64_t seed)
      : gpu_(name), seed_(seed), memory_(device_.memory(), ceiling) {}

  const MemoryMeter& meter() const override { return *this; }
  void open() override { constant_ += gpu_.truth().context; }
  Device& device() override { return device_; }
  const WorkspaceModel& workspaces() override { return gpu_; }
  SegmentSource& memory() override { return memory_; }
  Environment environment() override { return gpu_.environment(); }
  Bytes memory_free() override { return gpu_.environment().memory_total - memory_.held(); }
  void load_library(Library library) override {
    if (library == Library::kCublas) constant_ += gpu_.truth().cublas;
    if (library == Library::kCudnn) constant_ += gpu_.truth().cudnn;
    if (library == Library::kCufft) constant_ += gpu_.truth().cufft;
  }
  void prepare(Allocator& allocator) const override {
    constexpr int kUnusedStream = 1;  // other streams cannot reuse blocks freed on this one
    allocator.free(allocator.allocate(gpu_.truth().slack, kUnusedStream));
  }

 private:
  Bytes used() const override { return shown(constant_ + memory_.held()); }
  std::optional<Bytes> high_water() const override { return shown(constant_ + memory_.peak()); }
  std::string metric() const override { return "virtual"; }
  Bytes shown(Bytes truly) const { return truly.count() == 0 ? truly : gpu_.reading(truly, seed_); }

  VirtualGpu gpu_;
  std::uint64_t seed_;
  DryDevice device_;
  LimitedSegments memory_;
  Bytes constant_;
};

}  // namespace

DeviceName parse_device(std::string_view text) {
  if (text == "cpu") return {DeviceKind::kCpu, 0, ""};
  if (text == "cuda") return {DeviceKind::kCuda, 0, ""};
  if (text.starts_with("virtual:")) return {DeviceKind::kVirtual, 0, std::string(text.substr(8))};
  if (text.starts_with("cuda:")) {
    int index = -1;
    const char* end = text.data() + text.size();
    const auto [after, failure] = std::from_chars(text.data() + 5, end, index);
    if (failure == std::errc{} && after == end && index >= 0) return {DeviceKind::kCuda, index, ""};
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("--device is \"{}\"; write cpu, cuda:0 or virtual:NAME", text));
}

std::unique_ptr<ProbeTarget> make_target(const DeviceName& name, Bytes ceiling,
                                         std::uint64_t seed) {
  switch (name.kind) {
    case DeviceKind::kCpu: return std::make_unique<CpuTarget>(ceiling);
    case DeviceKind::kCuda: return std::make_unique<CudaTarget>(name.index, ceiling);
    case DeviceKind::kVirtual: return std::make_unique<VirtualTarget>(name.name, ceiling, seed);
    case DeviceKind::kDry: break;
  }
  throw Error(ErrorKind::kUsage, "the dry device has no memory to measure");
}

}  // namespace memfathom
