#include "profiler/cupti_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

namespace memfathom {
namespace {

// API 18 is that of CUDA 11.8; from 13.0 on the number is 130000 and more. What a later major
// version puts into its records is not known.
constexpr std::uint32_t kFirstVersion = 18;
constexpr std::uint32_t kLastOldVersion = 28;
constexpr std::uint32_t kFirstNewVersion = 130000;
constexpr std::uint32_t kEndOfVersions = 140000;

bool is_known(std::uint32_t version) {
  return (version >= kFirstVersion && version <= kLastOldVersion) ||
         (version >= kFirstNewVersion && version < kEndOfVersions);
}

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The toolkit keeps CUPTI in a folder that the loader does not search.
std::vector<std::string> places() {
  if (const char* given = std::getenv("MEMFATHOM_CUPTI")) return {given};
  std::vector<std::string> found{"libcupti.so.13", "libcupti.so.12"};
  const char* home = std::getenv("CUDA_HOME");
  const std::string toolkit = home != nullptr ? home : "/usr/local/cuda";
  found.push_back(toolkit + "/extras/CUPTI/lib64/libcupti.so");
  found.push_back(toolkit + "/lib64/libcupti.so");
  return found;
}

}  // namespace

bool CuptiLibrary::open(std::string* why) {
  // Without a driver CUPTI has nothing to record, and 13.2's cuptiGetVersion ends the process.
  if (std::getenv("MEMFATHOM_CUPTI") == nullptr && dlopen("libcuda.so.1", RTLD_NOW) == nullptr) {
    *why = "no NVIDIA driver is loaded";
    return false;
  }
  void* library = nullptr;
  for (const std::string& place : places()) {
    library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    *why = "NVIDIA's library of profiling tools (libcupti) is not installed";
    return false;
  }
  find(library, "cuptiActivityEnableAllocationSource", allocation_source);
  if (!find(library, "cuptiGetVersion", version) ||
      !find(library, "cuptiGetResultString", result_string) ||
      !find(library, "cuptiActivityRegisterCallbacks", register_callbacks) ||
      !find(library, "cuptiActivityEnable", enable) ||
      !find(library, "cuptiActivityDisable", disable) ||
      !find(library, "cuptiActivityFlushAll", flush_all) ||
      !find(library, "cuptiActivityGetNextRecord", next_record) ||
      !find(library, "cuptiActivityGetNumDroppedRecords", dropped) ||
      !find(library, "cuptiGetTimestamp", timestamp)) {
    *why = "libcupti lacks a function of its activity interface; CUDA 11.8 or newer has them all";
    return false;
  }
  std::uint32_t number = 0;
  if (const int status = version(&number); status != kSuccess) {
    *why = sentence("tell its version", status);
    return false;
  }
  if (!is_known(number)) {
    *why = fmt::format(
        "CUPTI has version {}; the records of 18 to 28 and of 130000 to 139999 are known (CUDA "
        "11.8 to 13)",
        number);
    return false;
  }
  return true;
}

std::string CuptiLibrary::sentence(const std::string& what, int status) const {
  const char* name = nullptr;
  if (result_string(status, &name) != kSuccess || name == nullptr) name = "an unknown error";
  return fmt::format("CUPTI cannot {}: {}", what, name);
}

}  // namespace memfathom
