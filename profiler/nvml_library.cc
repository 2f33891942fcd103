#include "profiler/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>

#include "core/error.h"

namespace memfathom {
namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool has(void* library, const char* name) { return dlsym(library, name) != nullptr; }

}  // namespace

bool NvmlLibrary::find_all(void* library) {
  find(library, "nvmlDeviceGetMemoryInfo_v2", memory);
  find(library, "nvmlDeviceGetHandleByUUID", by_uuid);
  find(library, "nvmlDeviceGetUUID", uuid);
  find(library, "nvmlSystemGetProcessName", process_name);
  find(library, "nvmlDeviceGetEccMode", ecc);
  find(library, "nvmlDeviceGetMigMode", mig);
  find(library, "nvmlDeviceGetMigDeviceHandleByIndex", instance);
  find(library, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", gpu_of_instance);
  find(library, "nvmlDeviceGetCudaComputeCapability", capability);
  // The version does not identify these drivers; functions added with the long entries and after
  // them do.
  has_long_processes = has(library, "nvmlDeviceGetComputeRunningProcesses_v3") &&
                       has(library, "nvmlDeviceGetConfComputeMemSizeInfo") &&
                       !has(library, "nvmlDeviceGetRunningProcessDetailList");
  return find(library, "nvmlInit_v2", init) && find(library, "nvmlShutdown", shutdown) &&
         find(library, "nvmlErrorString", error_string) &&
         find(library, "nvmlDeviceGetCount_v2", count) &&
         find(library, "nvmlDeviceGetHandleByIndex_v2", by_index) &&
         find(library, "nvmlDeviceGetName", name) &&
         find(library, "nvmlSystemGetDriverVersion", driver) &&
         find(library, "nvmlDeviceGetMemoryInfo", old_memory) &&
         // Both fill the same structure, except in the drivers above.
         (find(library, "nvmlDeviceGetComputeRunningProcesses_v3", processes) ||
          find(library, "nvmlDeviceGetComputeRunningProcesses_v2", processes));
}

std::vector<NvmlLibrary::Process> NvmlLibrary::processes_of(Handle gpu, int* status) const {
  const std::size_t stride = has_long_processes ? sizeof(LongProcess) : sizeof(Process);
  unsigned held = 64;
  std::vector<char> entries(held * stride);
  *status = processes(gpu, &held, entries.data());
  if (*status == kInsufficientSize) {
    held += 64;
    entries.resize(held * stride);
    *status = processes(gpu, &held, entries.data());
  }
  std::vector<Process> found(*status == kSuccess ? held : 0);
  for (std::size_t i = 0; i < found.size(); ++i)
    std::memcpy(&found[i], entries.data() + i * stride, sizeof(Process));
  return found;
}

void NvmlLibrary::check(int status, const std::string& what) const {
  if (status == kSuccess) return;
  throw Error(ErrorKind::kEnvironment,
              fmt::format("NVML cannot read {}: {}", what, error_string(status)));
}

std::optional<NvmlLibrary::Memory> NvmlLibrary::memory_of(Handle gpu) const {
  const auto reports = [&](int status) {
    if (status == kNotSupported) return false;
    check(status, "the memory in use");
    return true;
  };
  Memory told{};
  told.version = static_cast<unsigned>(sizeof(Memory)) | (2U << 24);
  if (memory != nullptr && reports(memory(gpu, &told))) return told;
  OldMemory old{};
  if (!reports(old_memory(gpu, &old))) return std::nullopt;
  told.version = 0;
  told.total = old.total;
  told.free = old.free;
  told.used = old.used;
  return told;
}

}  // namespace memfathom
