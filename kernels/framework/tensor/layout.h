// layout: tests for channels-last order, by PyTorch's rules.
#pragma once

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// is_contiguous(channels_last): strides of dimensions of extent 1 are ignored, so the weight of a
// 1x1 convolution is in both orders.
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
