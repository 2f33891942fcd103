#include "profiler/nvml_gpus.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <optional>

#include "core/error.h"
#include "profiler/visible_devices.h"

namespace memfathom {
namespace {

constexpr unsigned kMaxMigInstances = 7;

const char* visible_variable() { return std::getenv("CUDA_VISIBLE_DEVICES"); }

unsigned all_gpus(const NvmlLibrary& library) {
  unsigned count = 0;
  library.check(library.count(&count), "the number of devices");
  return count;
}

// CUDA accepts a unique prefix of a UUID, NVML needs all of it. Returns null if none matches.
NvmlLibrary::Handle by_uuid(const NvmlLibrary& library, const std::string& beginning) {
  NvmlLibrary::Handle found = nullptr;
  if (library.by_uuid != nullptr &&
      library.by_uuid(beginning.c_str(), &found) == NvmlLibrary::kSuccess)
    return found;
  const unsigned count = library.uuid != nullptr ? all_gpus(library) : 0;
  for (unsigned i = 0; i < count; ++i) {
    std::array<char, 128> uuid{};
    if (library.by_index(i, &found) == NvmlLibrary::kSuccess &&
        library.uuid(found, uuid.data(), uuid.size() - 1) == NvmlLibrary::kSuccess &&
        std::string(uuid.data()).starts_with(beginning))
      return found;
  }
  return nullptr;
}

// NVML also counts GPUs that the device cgroup hides; CUDA does not number them.
bool is_inaccessible(const NvmlLibrary& library, unsigned place) {
  NvmlLibrary::Handle gpu = nullptr;
  return library.by_index(place, &gpu) == NvmlLibrary::kNoPermission;
}

NvmlLibrary::Handle by_number(const NvmlLibrary& library, const std::string& entry) {
  const std::size_t number = std::strtoul(entry.c_str(), nullptr, 10);
  const unsigned count = all_gpus(library);
  std::size_t before = 0;
  for (unsigned place = 0; place < count; ++place) {
    if (is_inaccessible(library, place) || before++ < number) continue;
    NvmlLibrary::Handle found = nullptr;
    const int status = library.by_index(place, &found);
    if (status == NvmlLibrary::kInvalidArgument || status == NvmlLibrary::kNotFound) return nullptr;
    library.check(status, fmt::format("GPU {}", place));
    return found;
  }
  return nullptr;
}

NvmlGpu first_instance_of(const NvmlLibrary& library, NvmlLibrary::Handle whole) {
  NvmlLibrary::Handle instance = nullptr;
  for (unsigned i = 0; i < kMaxMigInstances && library.instance != nullptr; ++i) {
    if (library.instance(whole, i, &instance) == NvmlLibrary::kSuccess) return {instance, whole};
  }
  return {whole, whole};
}

// An entry of CUDA_VISIBLE_DEVICES.
std::optional<NvmlGpu> find_entry(const NvmlLibrary& library, const std::string& entry) {
  const bool is_instance = entry.starts_with("MIG-");
  const NvmlLibrary::Handle found = is_instance || entry.starts_with("GPU-")
                                        ? by_uuid(library, entry)
                                        : by_number(library, entry);
  if (found == nullptr) return std::nullopt;
  if (is_instance) {
    NvmlGpu gpu{found, found};
    if (library.gpu_of_instance != nullptr) library.gpu_of_instance(found, &gpu.whole);
    return gpu;
  }
  return is_mig_enabled(library, found) ? first_instance_of(library, found) : NvmlGpu{found, found};
}

}  // namespace

bool is_mig_enabled(const NvmlLibrary& library, NvmlLibrary::Handle gpu) {
  unsigned now = 0;
  unsigned after_reset = 0;
  return library.mig != nullptr && library.mig(gpu, &now, &after_reset) == NvmlLibrary::kSuccess &&
         now == 1;
}

int count_nvml_gpus(const NvmlLibrary& library) {
  const std::optional<std::vector<std::string>> visible = visible_devices(visible_variable());
  int count = 0;
  if (!visible) {
    const unsigned all = all_gpus(library);
    for (unsigned place = 0; place < all; ++place) count += is_inaccessible(library, place) ? 0 : 1;
    return count;
  }
  for (const std::string& entry : *visible) {
    if (!find_entry(library, entry)) break;
    ++count;
  }
  return count;
}

NvmlGpu find_nvml_gpu(const NvmlLibrary& library, int index) {
  const std::optional<std::vector<std::string>> visible = visible_devices(visible_variable());
  std::optional<std::string> entry = std::to_string(index);
  if (visible) {
    const auto place = static_cast<std::size_t>(index);
    entry = place < visible->size() ? std::optional((*visible)[place]) : std::nullopt;
  }
  if (const std::optional<NvmlGpu> found = entry ? find_entry(library, *entry) : std::nullopt)
    return *found;
  const int count = count_nvml_gpus(library);
  const std::string there = count == 0  ? "there is no GPU"
                            : count > 1 ? fmt::format("there are cuda:0 to cuda:{}", count - 1)
                                        : "there is cuda:0";
  throw Error(
      ErrorKind::kEnvironment,
      fmt::format(
          "cuda:{} does not exist; {}{}", index, there,
          visible ? fmt::format(" (CUDA_VISIBLE_DEVICES is \"{}\")", visible_variable()) : ""));
}

}  // namespace memfathom
