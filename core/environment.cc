#include "core/environment.h"

#include <fmt/format.h>

#include "core/architecture.h"
#include "core/error.h"

namespace memfathom {

DeviceKind Environment::kind() const {
  if (is_virtual()) return DeviceKind::kVirtual;
  if (architecture == "dry") return DeviceKind::kDry;
  if (compute_capability(architecture) > 0) return DeviceKind::kCuda;
  // Host architecture names are open-ended; a CPU is recognized by the suffix of its name.
  if (gpu.ends_with("(cpu)")) return DeviceKind::kCpu;
  throw Error(
      ErrorKind::kInput,
      fmt::format("the device \"{}\" with the architecture \"{}\" is of an unknown kind; "
                  "supported are CUDA GPUs (sm_NN), the CPU (a name that ends in \"(cpu)\"), "
                  "virtual and dry devices",
                  gpu, architecture));
}

std::string Environment::device_key() const {
  // In whole GiB: drivers report sizes for the same GPU that differ by a few MiB.
  const std::int64_t memory_gib = memory_total.rounded_up(Bytes{1LL << 30}).count() >> 30;
  return fmt::format("{}|{}|{} GiB|ecc {}|mig {}", gpu, architecture, memory_gib,
                     ecc ? "on" : "off", mig.empty() ? "off" : mig);
}

std::string Environment::stack_key() const {
  std::string key = fmt::format("driver {}|cuda {}|cublas {}|cudnn {}|cufft {}|{} {}", driver, cuda,
                                cublas, cudnn, cufft, framework, framework_version);
  // Rows from before it was recorded keep their key.
  if (!module_loading.empty()) key += fmt::format("|{} loading", module_loading);
  return key;
}

}  // namespace memfathom
