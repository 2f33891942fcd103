// A fake libnvidia-ml with one GPU, or $MEMFATHOM_FAKE_CARDS of them; with $MEMFATHOM_FAKE_DIVIDED
// they are partitioned into MIG instances of 10 GiB. On each are this process and another one; or
// the processes of the file $MEMFATHOM_FAKE_PROCESSES, a line "pid MiB from" each ("self" is this
// process; it is there from its `from`th reading on), as they stand there at every reading. Each
// reading of it leaves FILE.read behind, so that others can wait for it. With
// $MEMFATHOM_FAKE_SHARED the GPUs have no memory of their own, as integrated ones. The GPUs of
// $MEMFATHOM_FAKE_FORBIDDEN ("01": the first two) belong to another job and are inaccessible. With
// $MEMFATHOM_FAKE_CONTAINER it is the driver of a container: the processes of the file are listed
// with 0 bytes, as drivers 535.113.01 to 560.35.03 do (open-gpu-kernel-modules,
// src/nvidia/src/kernel/gpu/gpu_rmapi.c: _gpuConvertPid() lists the namespace's ids,
// gpuFindClientInfoWithPidIterator() compares them with pClient->ProcID, the host's), and the GPU's
// use is 3 GiB and theirs. With $MEMFATHOM_FAKE_SECRETIVE processes are hidden. Built with
// FAKE_DRIVER_535 it is that of drivers 535.43 to 535.86, whose process entries are longer.
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

bool is_container() { return std::getenv("MEMFATHOM_FAKE_CONTAINER") != nullptr; }

int readings = 0;  // of the list of processes

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
  if (!is_container() || file == nullptr) return used;
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
  if (is_container()) {
    for (FakeProcess& process : now) process.used = 0;
  }
  std::ofstream(std::string(file) + ".read") << "x";
  return now;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int) { return "Not Found"; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = card_count();
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
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
  std::strncpy(version, "580.1", length);
  return 0;
}
int nvmlDeviceGetMemoryInfo_v2(void* device, FakeMemory* memory) {
  if (memory->version != (sizeof(FakeMemory) | 2U << 24)) return kInvalidArgument;
  if (std::getenv("MEMFATHOM_FAKE_SHARED") != nullptr) return kNotSupported;
  memory->total = (gpu_at(device).whole != nullptr ? 10ULL : 80ULL) << 30;
  memory->reserved = 1ULL << 30;
  memory->used = used_now();
  memory->free = memory->total - memory->reserved - memory->used;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, FakeOldMemory* memory) {
  *memory = {80ULL << 30, 76ULL << 30, 4ULL << 30};
  return 0;
}
#ifdef FAKE_DRIVER_535
struct FakeEntry {
  FakeProcess process;
  unsigned long long used_protected = ~0ULL;
};
int nvmlDeviceGetConfComputeMemSizeInfo(void*, void*) { return kNotSupported; }
#else
struct FakeEntry {
  FakeProcess process;
};
#endif
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, FakeEntry* entries) {
  if (std::getenv("MEMFATHOM_FAKE_SECRETIVE") != nullptr) return kNotSupported;
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
