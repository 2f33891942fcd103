#include "core/environment.h"

#include <fmt/format.h>

namespace memfathom {

std::string Environment::device_key() const {
  // Whole GiB: drivers disagree by a few MiB about the same GPU, and it stays the same GPU.
  const std::int64_t memory_gib = memory_total.rounded_up(Bytes{1LL << 30}).count() >> 30;
  return fmt::format("{}|{}|{} GiB|ecc {}|mig {}", gpu, architecture, memory_gib,
                     ecc ? "on" : "off", mig.empty() ? "off" : mig);
}

std::string Environment::stack_key() const {
  return fmt::format("driver {}|cuda {}|cublas {}|cudnn {}|cufft {}|{} {}", driver, cuda, cublas,
                     cudnn, cufft, framework, framework_version);
}

}  // namespace memfathom
