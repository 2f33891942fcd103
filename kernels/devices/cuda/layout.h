// layout: whether an operand is dense in memory, in contiguous or channels-last order, as libraries
// require.
#pragma once

#include "kernels/framework/device/operand.h"

namespace memfathom::cuda {

// Strides of dimensions of extent 1 are ignored. Channels-last puts dimension 1 innermost.
inline bool is_packed(const Operand& operand, bool channels_last) {
  std::int64_t step = 1;
  const auto fits = [&](int d) {
    const bool right = operand.shape[d] == 1 || operand.strides[d] == step;
    step *= operand.shape[d];
    return right;
  };
  if (channels_last && !fits(1)) return false;
  for (int d = operand.shape.rank() - 1; d >= 0; --d) {
    if (!(channels_last && d == 1) && !fits(d)) return false;
  }
  return true;
}

}  // namespace memfathom::cuda
