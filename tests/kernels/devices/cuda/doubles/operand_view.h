// Operands translated from device addresses to the host memory behind them, with their whole extent
// checked.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/framework/device/operand.h"
#include "tests/kernels/devices/cuda/doubles/control.h"

namespace memfathom::doubles {

// Bytes from the first to one past the last element reached by the strides.
inline std::size_t extent_of(const Operand& operand) {
  std::int64_t last = 0;
  for (int i = 0; i < operand.shape.rank(); ++i) {
    if (operand.shape[i] == 0) return 0;
    last += (operand.shape[i] - 1) * operand.strides[i];
  }
  return static_cast<std::size_t>((last + 1) * bits_of(operand.dtype) / 8);
}

// Points `operand` at host memory; false (and a refusal) when part of it is not live device memory.
inline bool to_host(Operand& operand, const char* function, const char* name) {
  if (!operand) return true;
  void* host = host_view(operand.data, extent_of(operand));
  if (host == nullptr) {
    refuse(function, std::string(name) + " is not device memory of that extent", 0);
    return false;
  }
  operand.data = host;
  return true;
}

}  // namespace memfathom::doubles
