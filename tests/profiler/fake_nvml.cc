// A pretend libnvidia-ml with one card, and this process on it beside another one.
#include <unistd.h>

#include <cstring>

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
  std::strncpy(name, "Pretend H100", length);
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
  if (*count < 2) {
    *count = 2;
    return 7;
  }
  *count = 2;
  processes[0] = {7, ~0ULL, 0, 0};  // its memory may not be told
  processes[1] = {static_cast<unsigned>(getpid()), 2ULL << 30, 0, 0};
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
