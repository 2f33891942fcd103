#include "profiler/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "profiler/nvml_gpus.h"
#include "profiler/nvml_library.h"
#include "profiler/rss_meter.h"

namespace memfathom {
namespace {

Bytes bytes_of(unsigned long long count) { return Bytes{static_cast<std::int64_t>(count)}; }

std::optional<Bytes> used_of(const std::optional<NvmlLibrary::Memory>& memory) {
  return memory ? std::optional(bytes_of(memory->used)) : std::nullopt;
}

// What a GPU has that shares the system's memory. As NVIDIA advises for DGX Spark: available is
// what the system can give, its caches included.
void read_system_memory(GpuStatus& status) {
  std::ifstream file("/proc/meminfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  status.shares_system_memory = true;
  status.total = status_bytes(text, "MemTotal").value_or(Bytes{});
  status.free = status_bytes(text, "MemAvailable").value_or(Bytes{});
  status.used = status.total - status.free;
}

}  // namespace

void add_gpu_status(Environment& environment, const GpuStatus& status) {
  environment.driver = status.driver;
  environment.ecc = status.ecc;
  if (status.mig) environment.mig = "enabled";
}

Nvml::Nvml(std::unique_ptr<NvmlLibrary> library) : library_(std::move(library)) {}
Nvml::~Nvml() { library_->shutdown(); }

std::unique_ptr<Nvml> Nvml::open(std::string* why) {
  const char* given = std::getenv("MEMFATHOM_NVML");
  const char* path = given != nullptr ? given : "libnvidia-ml.so.1";
  void* opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    *why = "NVIDIA's management library (libnvidia-ml.so.1) is not installed";
    return nullptr;
  }
  auto library = std::make_unique<NvmlLibrary>();
  if (!library->find_all(opened)) {
    *why = fmt::format("{} is older than driver 460", path);
    return nullptr;
  }
  if (const int status = library->init(); status != NvmlLibrary::kSuccess) {
    *why = fmt::format("NVML failed to initialize: {}", library->error_string(status));
    return nullptr;
  }
  return std::unique_ptr<Nvml>(new Nvml(std::move(library)));
}

int Nvml::device_count() const { return count_nvml_gpus(*library_); }

std::optional<Bytes> Nvml::device_used(int index) const {
  return used_of(library_->memory_of(find_nvml_gpu(*library_, index).device));
}

std::vector<GpuProcess> Nvml::processes(int index) const {
  return processes_on(find_nvml_gpu(*library_, index).device, /*with_names=*/true);
}

Nvml::Gpu Nvml::gpu(int index) const { return {*this, find_nvml_gpu(*library_, index).device}; }

std::optional<Bytes> Nvml::Gpu::used() const { return used_of(nvml_.library_->memory_of(device_)); }

std::vector<GpuProcess> Nvml::Gpu::processes() const {
  return nvml_.processes_on(device_, /*with_names=*/false);
}

std::vector<GpuProcess> Nvml::processes_on(void* device, bool with_names) const {
  int status = NvmlLibrary::kSuccess;
  const std::vector<NvmlLibrary::Process> infos = library_->processes_of(device, &status);
  // NVML reports a whole MIG GPU's memory only to root, and none for integrated and Windows GPUs.
  if (status == NvmlLibrary::kNoPermission || status == NvmlLibrary::kNotSupported) return {};
  library_->check(status, "the processes");
  std::vector<GpuProcess> found;
  for (const NvmlLibrary::Process& info : infos) {
    GpuProcess process;
    process.pid = info.pid;
    if (info.used != NvmlLibrary::kNotAvailable) process.used = bytes_of(info.used);
    std::array<char, 256> name{};
    if (with_names && library_->process_name != nullptr &&
        library_->process_name(info.pid, name.data(), name.size() - 1) == NvmlLibrary::kSuccess) {
      process.name = name.data();
    }
    found.push_back(std::move(process));
  }
  return found;
}

GpuStatus Nvml::status(int index) const {
  const NvmlGpu asked = find_nvml_gpu(*library_, index);
  GpuStatus status;
  std::array<char, 128> text{};
  library_->check(library_->name(asked.device, text.data(), text.size()), "the device's name");
  status.name = text.data();
  library_->check(library_->driver(text.data(), text.size()), "the driver's version");
  status.driver = text.data();
  if (const std::optional<NvmlLibrary::Memory> memory = library_->memory_of(asked.device)) {
    status.total = bytes_of(memory->total);
    status.used = bytes_of(memory->used);
    status.free = bytes_of(memory->free);
    if (memory->version != 0) status.reserved = bytes_of(memory->reserved);
  } else {
    read_system_memory(status);
  }
  int ecc = 0;
  int ecc_pending = 0;
  if (library_->ecc != nullptr) library_->ecc(asked.whole, &ecc, &ecc_pending);  // 0 if unavailable
  status.ecc = ecc == 1;
  status.mig = is_mig_enabled(*library_, asked.whole);
  int major = 0;
  int minor = 0;
  if (library_->capability != nullptr) library_->capability(asked.whole, &major, &minor);
  status.compute_capability = 10 * major + minor;
  status.processes = processes_on(asked.device, /*with_names=*/true);
  return status;
}

}  // namespace memfathom
