// NvmlLibrary: the libnvidia-ml functions we call, with the types from its documentation.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace memfathom {

struct NvmlLibrary {
  using Handle = void*;

  // The statuses that callers handle.
  static constexpr int kSuccess = 0;
  static constexpr int kInvalidArgument = 2;
  static constexpr int kNotSupported = 3;
  static constexpr int kNoPermission = 4;
  static constexpr int kNotFound = 6;
  static constexpr int kInsufficientSize = 7;
  static constexpr unsigned long long kNotAvailable = ~0ULL;

  struct Memory {
    unsigned version;  // 0: `reserved` is not told
    unsigned long long total, reserved, free, used;
  };
  struct OldMemory {
    unsigned long long total, free, used;
  };
  struct Process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
  };
  // The entry that drivers 535.43 to 535.86 fill instead, under the same name and version.
  struct LongProcess {
    Process process;
    unsigned long long used_protected;
  };

  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Handle*) = nullptr;
  int (*name)(Handle, char*, unsigned) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  int (*processes)(Handle, unsigned*, void*) = nullptr;
  bool has_long_processes = false;  // the driver fills LongProcess
  int (*old_memory)(Handle, OldMemory*) = nullptr;
  // The functions below are optional.
  int (*memory)(Handle, Memory*) = nullptr;
  int (*by_uuid)(const char*, Handle*) = nullptr;
  int (*uuid)(Handle, char*, unsigned) = nullptr;
  int (*process_name)(unsigned, char*, unsigned) = nullptr;
  int (*ecc)(Handle, int*, int*) = nullptr;
  int (*mig)(Handle, unsigned*, unsigned*) = nullptr;
  int (*instance)(Handle, unsigned, Handle*) = nullptr;
  int (*gpu_of_instance)(Handle, Handle*) = nullptr;
  int (*capability)(Handle, int*, int*) = nullptr;

  // Finds the functions in an opened library; false if a required one is missing.
  bool find_all(void* library);
  // Throws Error(kEnvironment) unless `status` is success: "NVML cannot read `what`: ...".
  void check(int status, const std::string& what) const;
  // `status` receives the result; the list is empty unless it is success.
  std::vector<Process> processes_of(Handle gpu, int* status) const;
  // Nullopt for GPUs that share the system's memory (GB10, Jetson): both functions refuse.
  // Libraries too old to report the driver's reservation include it in used memory.
  std::optional<Memory> memory_of(Handle gpu) const;
};

}  // namespace memfathom
