// DeviceKind: what a job runs on: a CUDA GPU, this machine's CPU, a simulated GPU, or the dry
// device, which only computes sizes.
#pragma once

#include <cstdint>

namespace memfathom {

enum class DeviceKind : std::uint8_t { kCpu, kCuda, kVirtual, kDry };

}  // namespace memfathom
