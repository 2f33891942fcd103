#include "kernels/cpu/open.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/error.h"

namespace memfathom {
namespace {

constexpr const char* kModule = "libmemfathom_cpu.so";

std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  if (const char* folder = std::getenv("MEMFATHOM_MODULES")) paths.push_back(fmt::format("{}/{}", folder, kModule));
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    const std::filesystem::path folder = program.parent_path();
    paths.push_back((folder / kModule).string());
    paths.push_back((folder.parent_path() / "lib" / "memfathom" / kModule).string());
  }
  paths.emplace_back(kModule);
  return paths;
}

void* load_module() {
  std::string reason;
  for (const std::string& path : candidates()) {
    if (path.find('/') != std::string::npos && !std::filesystem::exists(path)) continue;
    if (void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return module;
    if (reason.empty()) reason = dlerror();
  }
  throw Error(ErrorKind::kEnvironment,
              fmt::format("cannot load the cpu device: {}; install oneDNN (libdnnl2) and FFTW (libfftw3-single3), or set "
                          "MEMFATHOM_MODULES to the folder of {}",
                          reason, kModule));
}

}  // namespace

std::unique_ptr<Device> open_cpu_device() {
  void* module = load_module();
  using Open = Device* (*)();
  const auto open = reinterpret_cast<Open>(dlsym(module, "memfathom_open_cpu"));
  if (open == nullptr) {
    throw Error(ErrorKind::kEnvironment, fmt::format("{} has no entry memfathom_open_cpu; it belongs to another version", kModule));
  }
  return std::unique_ptr<Device>(open());
}

}  // namespace memfathom
