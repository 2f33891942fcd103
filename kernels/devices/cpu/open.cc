#include "kernels/devices/cpu/open.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/companion_files.h"
#include "core/error.h"
#include "kernels/devices/module_interface.h"

namespace memfathom {
namespace {

constexpr const char* kModule = "libmemfathom_cpu.so";

std::vector<std::filesystem::path> candidates() {
  if (const char* path = std::getenv("MEMFATHOM_CPU_MODULE")) return {path};
  std::vector<std::filesystem::path> paths = companion_places(own_binaries(), "lib", kModule);
  paths.emplace_back(kModule);
  return paths;
}

// Reports the first existing file's error, which is more useful than "not found" for the others.
void* load_module() {
  std::string reason;
  for (const std::filesystem::path& path : candidates()) {
    if (void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return module;
    reason = dlerror();
    if (std::filesystem::exists(path)) break;
  }
  throw Error(ErrorKind::kEnvironment, fmt::format("cannot load the cpu device: {}; install oneDNN "
                                                   "(libdnnl2) and FFTW (libfftw3-single3), or set "
                                                   "MEMFATHOM_CPU_MODULE to the path of {}",
                                                   reason, kModule));
}

template <typename Function>
Function entry(void* module, const char* name) {
  void* address = dlsym(module, name);
  if (address == nullptr)
    throw Error(
        ErrorKind::kEnvironment,
        fmt::format("{} has no entry {}; install the module of this version, " MEMFATHOM_VERSION,
                    kModule, name));
  return reinterpret_cast<Function>(address);
}

}  // namespace

std::unique_ptr<Device> open_cpu_device() {
  void* module = load_module();
  const std::uint64_t interface = entry<std::uint64_t (*)()>(module, "memfathom_cpu_interface")();
  if (interface != module_interface()) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{} belongs to another build of memfathom (interface {:x}, this "
                            "program has {:x}); install that of this program, " MEMFATHOM_VERSION,
                            kModule, interface, module_interface()));
  }
  return std::unique_ptr<Device>(entry<Device* (*)()>(module, "memfathom_open_cpu")());
}

}  // namespace memfathom
