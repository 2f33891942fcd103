// A fake libnvidia-ml with one GPU, or $MEMFATHOM_FAKE_CARDS of them; with $MEMFATHOM_FAKE_DIVIDED
// they are partitioned into MIG instances of 10 GiB. On each are this process and another one; or
// the processes of the file $MEMFATHOM_FAKE_PROCESSES, a line "pid MiB from" each ("self" is this
// process; it is there from its `from`th reading on), as they stand there at every reading. Each
// reading of it leaves FILE.read behind, so that others can wait for it. With
// $MEMFATHOM_FAKE_SHARED the GPUs have no memory of their own, as integrated ones; with
// $MEMFATHOM_FAKE_ONLY_OLD only the function without a version tells it. The GPUs of
// $MEMFATHOM_FAKE_FORBIDDEN ("01": the first two) belong to another job and are inaccessible. With
// $MEMFATHOM_FAKE_CONTAINER it is the driver of a container: the processes of the file are listed
// with 0 bytes, as drivers 535.113.01 to 560.35.03 do (open-gpu-kernel-modules,
// src/nvidia/src/kernel/gpu/gpu_rmapi.c: _gpuConvertPid() lists the namespace's ids,
// gpuFindClientInfoWithPidIterator() compares them with pClient->ProcID, the host's), and the GPU's
// use is 3 GiB and theirs. With $MEMFATHOM_FAKE_SECRETIVE processes are hidden.
//
// Built with FAKE_BRANCH it is the library of a driver branch, and $MEMFATHOM_FAKE_PLACE where it
// runs:
//   530: older functions; 535: 535.43 to 535.86, whose process entries are longer (nvitop's pull
//   requests 79 and 89); 550: 535.113.01 to 560.35.03; 580: 565.57.01 and later. container: before
//   535.113.01 the ids are not converted: all processes are listed under the host's ids
//   (nvidia-docker's issue 1483); then with 0 bytes, as above (tags 535.113.01 to 535.288.01, 545,
//   550 to 550.163.01, 555, 560); from 565.57.01 on (_gpuMatchClientPid in the same file) with
//   their memory. wsl: nvml.h: usedGpuMemory is "not available" under Windows' WDDM, whose kernel
//   manages the memory; that WSL, which it does not name, is the same is an assumption. vgpu:
//   nvml.h: processes of MIG handles are "not supported if the device is in vGPU Host
//   virtualization mode"; that the whole GPU is the same is an assumption. The open modules are
//   read; NVML itself is not public.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

extern "C" {

struct FakeMemory {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct FakeOldMemory {
  unsigned long long total, free, used;
};
struct FakeProcess {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
}

namespace {

struct FakeCard {
  std::string uuid;
  FakeCard* whole = nullptr;  // of an instance
};

constexpr int kMostCards = 8;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr int kNotFound = 6;
constexpr unsigned kHostsFirstId = 5'000'000;  // above Linux's highest id, 2^22

std::vector<FakeCard>& gpus() {
  static std::vector<FakeCard> all = [] {
    std::vector<FakeCard> made(std::size_t{2} * kMostCards);
    for (std::size_t i = 0; i < kMostCards; ++i) {
      made[i].uuid = "GPU-" + std::to_string(i) + "0000000-aaaa";
      made[kMostCards + i].uuid = "MIG-" + std::to_string(i) + "0000000-aaaa";
      made[kMostCards + i].whole = &made[i];
    }
    return made;
  }();
  return all;
}

bool are_divided() { return std::getenv("MEMFATHOM_FAKE_DIVIDED") != nullptr; }

unsigned card_count() {
  const char* given = std::getenv("MEMFATHOM_FAKE_CARDS");
  return given == nullptr ? 1 : static_cast<unsigned>(std::atoi(given));
}

bool is_forbidden(unsigned index) {
  const char* given = std::getenv("MEMFATHOM_FAKE_FORBIDDEN");
  return given != nullptr && std::string(given).find(std::to_string(index)) != std::string::npos;
}

FakeCard& gpu_at(void* handle) { return *static_cast<FakeCard*>(handle); }

#ifndef FAKE_BRANCH
#define FAKE_BRANCH 580
#endif

std::string place() {
  const char* given = std::getenv("MEMFATHOM_FAKE_PLACE");
  return given == nullptr ? "" : given;
}

enum class Telling { kMemory, kZero, kHostIds, kNotAvailable, kRefused };

// What the driver tells of a process.
Telling telling() {
  if (std::getenv("MEMFATHOM_FAKE_CONTAINER") != nullptr) return Telling::kZero;
  if (std::getenv("MEMFATHOM_FAKE_SECRETIVE") != nullptr || place() == "vgpu")
    return Telling::kRefused;
  if (place() == "wsl") return Telling::kNotAvailable;
  if (place() != "container") return Telling::kMemory;
  if (FAKE_BRANCH < 550) return Telling::kHostIds;
  return FAKE_BRANCH < 565 ? Telling::kZero : Telling::kMemory;
}

// Where the GPU's use includes that of the processes in the file.
bool counts_processes() {
  return std::getenv("MEMFATHOM_FAKE_CONTAINER") != nullptr ||
         std::getenv("MEMFATHOM_FAKE_PLACE") != nullptr;
}

int readings = 0;  // of the list of processes
int lookups = 0;   // of GPUs and process names

// Those of the file that are there after `readings` readings.
std::vector<FakeProcess> processes_of(const char* file) {
  std::vector<FakeProcess> now;
  std::ifstream lines(file);
  std::string pid;
  unsigned long long mib = 0;
  for (int from = 0; lines >> pid >> mib >> from;) {
    if (readings < from) continue;
    const int number = pid == "self" ? getpid() : std::stoi(pid);
    now.push_back({static_cast<unsigned>(number), mib << 20, 0, 0});
  }
  return now;
}

unsigned long long used_now() {
  unsigned long long used = 3ULL << 30;
  const char* file = std::getenv("MEMFATHOM_FAKE_PROCESSES");
  if (!counts_processes() || file == nullptr) return used;
  for (const FakeProcess& process : processes_of(file)) used += process.used;
  return used;
}

std::vector<FakeProcess> processes_now() {
  std::vector<FakeProcess> now;
  const char* file = std::getenv("MEMFATHOM_FAKE_PROCESSES");
  if (file == nullptr) {
    now.push_back({7, ~0ULL, 0, 0});  // its memory is not readable
    now.push_back({static_cast<unsigned>(getpid()), 2ULL << 30, 0, 0});
    return now;
  }
  ++readings;
  now = processes_of(file);
  for (FakeProcess& process : now) {
    if (telling() == Telling::kZero) process.used = 0;
    if (telling() == Telling::kNotAvailable) process.used = ~0ULL;
    if (telling() == Telling::kHostIds) process.pid += kHostsFirstId;
  }
  std::ofstream(std::string(file) + ".read") << "x";
  return now;
}

}  // namespace

extern "C" {

int fake_nvml_lookups() { return lookups; }
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int) { return "Not Found"; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = card_count();
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  ++lookups;
  if (index >= card_count()) return kInvalidArgument;
  if (is_forbidden(index)) return kNoPermission;
  *device = &gpus()[index];
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (FakeCard& gpu : gpus()) {
    *device = &gpu;
    if (gpu.uuid == uuid) return 0;
  }
  return kNotFound;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  std::strncpy(uuid, gpu_at(device).uuid.c_str(), length);
  return 0;
}
int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  if (gpu_at(device).whole != nullptr) return kNotSupported;
  *current = *pending = are_divided() ? 1 : 0;
  return 0;
}
// The first index is empty, as after removing an instance.
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** instance) {
  if (index != 1) return kNotFound;
  *instance = &gpu_at(device) + kMostCards;
  return 0;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* instance, void** device) {
  *device = gpu_at(instance).whole;
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  const char* given = std::getenv("MEMFATHOM_FAKE_NAME");
  std::strncpy(name, given != nullptr ? given : "Pretend H100", length);
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  const char* versions = FAKE_BRANCH == 530   ? "530.30.02"
                         : FAKE_BRANCH == 535 ? "535.86.10"
                         : FAKE_BRANCH == 550 ? "550.54.15"
                                              : "580.1";
  std::strncpy(version, versions, length);
  return 0;
}
int nvmlDeviceGetMemoryInfo_v2(void* device, FakeMemory* memory) {
  if (memory->version != (sizeof(FakeMemory) | 2U << 24)) return kInvalidArgument;
  if (std::getenv("MEMFATHOM_FAKE_SHARED") != nullptr ||
      std::getenv("MEMFATHOM_FAKE_ONLY_OLD") != nullptr)
    return kNotSupported;
  memory->total = (gpu_at(device).whole != nullptr ? 10ULL : 80ULL) << 30;
  memory->reserved = 1ULL << 30;
  memory->used = used_now();
  memory->free = memory->total - memory->reserved - memory->used;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, FakeOldMemory* memory) {
  if (std::getenv("MEMFATHOM_FAKE_SHARED") != nullptr) return kNotSupported;
  *memory = {80ULL << 30, 76ULL << 30, 4ULL << 30};
  return 0;
}
struct FakeEntry {
  FakeProcess process;
#if FAKE_BRANCH == 535
  unsigned long long used_protected = ~0ULL;
#endif
};
#if FAKE_BRANCH >= 535
int nvmlDeviceGetConfComputeMemSizeInfo(void*, void*) { return kNotSupported; }
#endif
#if FAKE_BRANCH >= 550
int nvmlDeviceGetRunningProcessDetailList(void*, void*) { return kNotSupported; }
#endif
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, FakeEntry* entries) {
  if (telling() == Telling::kRefused) return kNotSupported;
  if (are_divided() && gpu_at(device).whole == nullptr) return kNoPermission;
  const std::vector<FakeProcess> now = processes_now();
  if (*count < now.size()) {
    *count = static_cast<unsigned>(now.size());
    return 7;
  }
  *count = static_cast<unsigned>(now.size());
  std::transform(now.begin(), now.end(), entries,
                 [](const FakeProcess& process) { return FakeEntry{process}; });
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return 0;
}
int nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  ++lookups;
  if (pid != 7) return kNoPermission;
  std::strncpy(name, "python", length);
  return 0;
}
int nvmlDeviceGetEccMode(void* device, int* current, int* pending) {
  if (gpu_at(device).whole != nullptr) return kNotSupported;
  *current = *pending = 1;
  return 0;
}
}
