#include "profiler/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <sstream>

#include "core/error.h"

namespace memfathom {
namespace {

// The library's binary interface, as its documentation gives it.
using Handle = void*;
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr unsigned long long kNotAvailable = ~0ULL;

struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

struct ProcessInfo {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

template <typename Function>
bool load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Handle*) = nullptr;
  int (*by_uuid)(const char*, Handle*) = nullptr;
  int (*name)(Handle, char*, unsigned) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  int (*memory)(Handle, MemoryV2*) = nullptr;
  int (*processes)(Handle, unsigned*, ProcessInfo*) = nullptr;
  int (*process_name)(unsigned, char*, unsigned) = nullptr;
  int (*ecc)(Handle, int*, int*) = nullptr;
  int (*mig)(Handle, unsigned*, unsigned*) = nullptr;
  int (*capability)(Handle, int*, int*) = nullptr;

  bool load_all(void* library) {
    load(library, "nvmlDeviceGetHandleByUUID", by_uuid);  // these five may be missing
    load(library, "nvmlSystemGetProcessName", process_name);
    load(library, "nvmlDeviceGetEccMode", ecc);
    load(library, "nvmlDeviceGetMigMode", mig);
    load(library, "nvmlDeviceGetCudaComputeCapability", capability);
    return load(library, "nvmlInit_v2", init) && load(library, "nvmlShutdown", shutdown) &&
           load(library, "nvmlErrorString", error_string) &&
           load(library, "nvmlDeviceGetCount_v2", count) &&
           load(library, "nvmlDeviceGetHandleByIndex_v2", by_index) &&
           load(library, "nvmlDeviceGetName", name) &&
           load(library, "nvmlSystemGetDriverVersion", driver) &&
           load(library, "nvmlDeviceGetMemoryInfo_v2", memory) &&
           load(library, "nvmlDeviceGetComputeRunningProcesses_v3", processes);
  }

  void check(int status, const char* what) const {
    if (status == kSuccess) return;
    throw Error(ErrorKind::kEnvironment,
                fmt::format("NVML cannot tell {}: {}", what, error_string(status)));
  }
};

Nvml::Nvml(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}
void add_to(Environment& environment, const GpuStatus& status) {
  environment.driver = status.driver;
  environment.ecc = status.ecc;
  if (status.mig) environment.mig = "enabled";
}

Nvml::~Nvml() { functions_->shutdown(); }

std::unique_ptr<Nvml> Nvml::open(std::string* why) {
  const char* given = std::getenv("MEMFATHOM_NVML");
  const char* path = given != nullptr ? given : "libnvidia-ml.so.1";
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *why = "NVIDIA's management library (libnvidia-ml.so.1) is not installed";
    return nullptr;
  }
  auto functions = std::make_unique<Functions>();
  if (!functions->load_all(library)) {
    *why = fmt::format("{} is older than driver 510", path);
    return nullptr;
  }
  if (const int status = functions->init(); status != kSuccess) {
    *why = fmt::format("NVML does not start: {}", functions->error_string(status));
    return nullptr;
  }
  return std::unique_ptr<Nvml>(new Nvml(std::move(functions)));
}

int Nvml::device_count() const {
  unsigned count = 0;
  functions_->check(functions_->count(&count), "the number of devices");
  return static_cast<int>(count);
}

void* Nvml::device(int index) const {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::optional<std::string> entry = visible_device(visible != nullptr ? visible : "", index);
  if (!entry) {
    throw Error(
        ErrorKind::kEnvironment,
        fmt::format("CUDA_VISIBLE_DEVICES is \"{}\": there is no device cuda:{}", visible, index));
  }
  Handle handle = nullptr;
  if (entry->starts_with("GPU-") && functions_->by_uuid != nullptr) {
    functions_->check(functions_->by_uuid(entry->c_str(), &handle), "the device of that UUID");
    return handle;
  }
  const unsigned number = static_cast<unsigned>(std::strtoul(entry->c_str(), nullptr, 10));
  functions_->check(functions_->by_index(number, &handle), "the device of that index");
  return handle;
}

Bytes Nvml::device_used(int index) const {
  MemoryV2 memory{};
  memory.version = static_cast<unsigned>(sizeof(MemoryV2)) | (2U << 24);
  functions_->check(functions_->memory(device(index), &memory), "the memory in use");
  return Bytes{static_cast<std::int64_t>(memory.used)};
}

std::vector<GpuProcess> Nvml::processes(int index) const {
  void* const handle = device(index);
  std::vector<ProcessInfo> infos(64);
  unsigned count = static_cast<unsigned>(infos.size());
  int status = functions_->processes(handle, &count, infos.data());
  if (status == kInsufficientSize) {
    infos.resize(count + 64);
    count = static_cast<unsigned>(infos.size());
    status = functions_->processes(handle, &count, infos.data());
  }
  functions_->check(status, "the processes");
  std::vector<GpuProcess> found;
  for (unsigned i = 0; i < count; ++i) {
    GpuProcess process;
    process.pid = infos[i].pid;
    if (infos[i].used != kNotAvailable)
      process.used = Bytes{static_cast<std::int64_t>(infos[i].used)};
    std::array<char, 256> name{};
    if (functions_->process_name != nullptr &&
        functions_->process_name(infos[i].pid, name.data(), name.size() - 1) == kSuccess) {
      process.name = name.data();
    }
    found.push_back(std::move(process));
  }
  return found;
}

GpuStatus Nvml::status(int index) const {
  void* const handle = device(index);
  GpuStatus status;
  std::array<char, 128> text{};
  functions_->check(functions_->name(handle, text.data(), text.size()), "the device's name");
  status.name = text.data();
  functions_->check(functions_->driver(text.data(), text.size()), "the driver's version");
  status.driver = text.data();
  MemoryV2 memory{};
  memory.version = static_cast<unsigned>(sizeof(MemoryV2)) | (2U << 24);
  functions_->check(functions_->memory(handle, &memory), "the memory in use");
  status.total = Bytes{static_cast<std::int64_t>(memory.total)};
  status.used = Bytes{static_cast<std::int64_t>(memory.used)};
  status.free = Bytes{static_cast<std::int64_t>(memory.free)};
  status.reserved = Bytes{static_cast<std::int64_t>(memory.reserved)};
  int ecc = 0;
  int ecc_pending = 0;
  if (functions_->ecc != nullptr) functions_->ecc(handle, &ecc, &ecc_pending);  // cards without: 0
  status.ecc = ecc == 1;
  unsigned mig = 0;
  unsigned mig_pending = 0;
  if (functions_->mig != nullptr) functions_->mig(handle, &mig, &mig_pending);
  status.mig = mig == 1;
  int major = 0;
  int minor = 0;
  if (functions_->capability != nullptr) functions_->capability(handle, &major, &minor);
  status.compute_capability = 10 * major + minor;
  status.processes = processes(index);
  return status;
}

std::optional<std::string> visible_device(const std::string& visible, int index) {
  if (visible.empty()) return std::to_string(index);
  std::istringstream entries(visible);
  std::string entry;
  for (int i = 0; std::getline(entries, entry, ','); ++i) {
    if (i == index) return entry;
  }
  return std::nullopt;
}

}  // namespace memfathom
