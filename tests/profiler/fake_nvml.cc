// A pretend libnvidia-ml with one card, and this process on it beside another one; or the processes
// of the file $MEMFATHOM_FAKE_PROCESSES, a line "pid MiB from" each ("self" is this process; it is
// there from its `from`th reading on), as they stand there at every reading. Each reading of it
// leaves FILE.read behind, so that others can wait for it.
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
struct FakeProcess {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
}

namespace {

std::vector<FakeProcess> processes_now() {
  std::vector<FakeProcess> now;
  const char* file = std::getenv("MEMFATHOM_FAKE_PROCESSES");
  if (file == nullptr) {
    now.push_back({7, ~0ULL, 0, 0});  // its memory may not be told
    now.push_back({static_cast<unsigned>(getpid()), 2ULL << 30, 0, 0});
    return now;
  }
  static int readings = 0;
  ++readings;
  std::ifstream lines(file);
  std::string pid;
  unsigned long long mib = 0;
  for (int from = 0; lines >> pid >> mib >> from;) {
    if (readings < from) continue;
    const int number = pid == "self" ? getpid() : std::stoi(pid);
    now.push_back({static_cast<unsigned>(number), mib << 20, 0, 0});
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
  *count = 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static int card = 0;
  *device = &card;
  return index == 0 ? 0 : 6;
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
int nvmlDeviceGetMemoryInfo_v2(void*, FakeMemory* memory) {
  if (memory->version != (sizeof(FakeMemory) | 2U << 24)) return 2;
  memory->total = 80ULL << 30;
  memory->reserved = 1ULL << 30;
  memory->used = 3ULL << 30;
  memory->free = 76ULL << 30;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, FakeProcess* processes) {
  const std::vector<FakeProcess> now = processes_now();
  if (*count < now.size()) {
    *count = static_cast<unsigned>(now.size());
    return 7;
  }
  *count = static_cast<unsigned>(now.size());
  std::copy(now.begin(), now.end(), processes);
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return 0;
}
int nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  if (pid != 7) return 4;
  std::strncpy(name, "python", length);
  return 0;
}
int nvmlDeviceGetEccMode(void*, int* current, int* pending) {
  *current = *pending = 1;
  return 0;
}
}
