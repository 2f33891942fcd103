// DeviceKind: what a job runs on: a GPU under CUDA, this machine's CPU, a simulated GPU, or the dry
// device that only does the arithmetic.
#pragma once

#include <cstdint>

namespace memfathom {

enum class DeviceKind : std::uint8_t { kCpu, kCuda, kVirtual, kDry };

}  // namespace memfathom
