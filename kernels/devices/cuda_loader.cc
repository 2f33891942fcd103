#include "kernels/devices/cuda_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "core/companion_files.h"
#include "core/error.h"
#include "kernels/devices/module_interface.h"

namespace memfathom {
namespace {

constexpr const char* kFileName = "libmemfathom_cuda.so";
constexpr const char* kOrderVariable = "CUDA_DEVICE_ORDER";

[[noreturn]] void fail(const std::string& sentence) {
  throw Error(ErrorKind::kEnvironment, sentence);
}

// dlerror's text, which names the file and the reason.
std::string last_message() {
  const char* message = dlerror();
  return message == nullptr ? "unknown reason" : message;
}

const CudaModule& open_module(const std::filesystem::path& file) {
  // Never unloaded: devices and the CUDA runtime's exit handlers point into it.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    fail(
        fmt::format("the CUDA module could not be opened ({}); install the CUDA libraries it "
                    "names or put their folder into LD_LIBRARY_PATH (PyTorch's are in "
                    "site-packages/nvidia/*/lib), or use --device cpu",
                    last_message()));
  }
  const auto entry = reinterpret_cast<CudaModuleEntry>(dlsym(library, kCudaModuleSymbol));
  if (entry == nullptr) fail(fmt::format("{} is not a CUDA module of memfathom", file.string()));
  const CudaModule* module = entry();
  if (module->interface != module_interface()) {
    fail(
        fmt::format("{} belongs to another build of memfathom (interface {:x}, this program has "
                    "{:x}); build both together",
                    file.string(), module->interface, module_interface()));
  }
  return *module;
}

}  // namespace

std::vector<std::filesystem::path> cuda_module_search_paths() {
  if (const char* given = std::getenv("MEMFATHOM_CUDA_MODULE"); given != nullptr && *given != '\0')
    return {given};
  std::vector<std::filesystem::path> places = companion_places(own_binaries(), "lib", kFileName);
  for (auto& place : python_package_places(own_binaries(), "memfathom_cuda", kFileName))
    places.push_back(std::move(place));
  places.emplace_back(kFileName);
  return places;
}

const CudaModule& load_cuda_module(const std::vector<std::filesystem::path>& places) {
  // Orders GPUs by PCI bus, as NVML and nvidia-smi do, unless the user set it; set only once,
  // because other threads may read the environment later.
  if (std::getenv(kOrderVariable) == nullptr) setenv(kOrderVariable, "PCI_BUS_ID", 0);
  for (const auto& place : places) {
    std::error_code error;
    if (place.has_parent_path() && std::filesystem::exists(place, error)) return open_module(place);
  }
  // The last candidate may be a bare name, which only the dynamic linker can find.
  if (!places.empty() && !places.back().has_parent_path() &&
      dlopen(places.back().c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) {
    return open_module(places.back());
  }
  fail(
      fmt::format("{} was not found, so this memfathom cannot use a GPU; install its wheel "
                  "(memfathom-cuda13 or memfathom-cuda12, of this version), build with "
                  "-DMEMFATHOM_CUDA=ON, name the file in "
                  "MEMFATHOM_CUDA_MODULE, or use --device cpu",
                  places.empty() ? kFileName : places.front().string()));
}

std::unique_ptr<Device> open_cuda_device(int index) { return load_cuda_module().open(index); }

}  // namespace memfathom
