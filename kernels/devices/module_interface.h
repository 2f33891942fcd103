// module_interface: the interface of the device modules as a number: a hash of
// kernels/devices/cuda_module.h, every header it includes, and the compiler. Program and module
// each contain a copy, and the program rejects modules with another number.
#pragma once

#include <cstdint>

namespace memfathom {

std::uint64_t module_interface();

}  // namespace memfathom
