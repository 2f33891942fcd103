#include "kernels/devices/cpu/versions.h"

#include <dnnl.h>
#include <fftw3.h>
#include <fmt/core.h>

#include <string_view>

namespace memfathom::cpu {

std::string products_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

std::string transforms_version() {
  const std::string_view text = fftwf_version;  // "fftw-3.3.10-sse2-avx..."
  const std::size_t first = text.find('-') + 1;
  return fmt::format("FFTW {}", text.substr(first, text.find('-', first) - first));
}

}  // namespace memfathom::cpu
