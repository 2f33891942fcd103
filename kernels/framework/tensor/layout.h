// Whether a tensor lies in channels-last order, as PyTorch sees it.
#pragma once

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// is_contiguous(channels_last): strides along extents of 1 mean nothing, so that the weight of a
// 1x1 convolution lies in both orders.
inline bool is_channels_last_contiguous(const Tensor& x) {
  if (x.rank() < 4) return false;
  const Shape wanted = channels_last_strides(x.shape());
  for (int d = 0; d < x.rank(); ++d) {
    if (x.size(d) != 1 && x.strides()[d] != wanted[d]) return false;
  }
  return true;
}

// suggest_memory_format: every stride counts.
inline bool is_channels_last(const Tensor& x) {
  return x.rank() >= 4 && !x.is_contiguous() && x.strides() == channels_last_strides(x.shape());
}

}  // namespace memfathom
