// The interface of the device modules, as a number: a hash of kernels/devices/cuda_module.h, of
// every header it includes, and of the compiler. Program and module each have their own copy, and
// the program opens no module with another number.
#pragma once

#include <cstdint>

namespace memfathom {

std::uint64_t module_interface();

}  // namespace memfathom
