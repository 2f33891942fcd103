// Whether a tensor lies in channels-last order, as PyTorch's suggest_memory_format sees it.
#pragma once

#include "kernels/tensor/tensor.h"

namespace memfathom {

inline bool is_channels_last(const Tensor& x) {
  return x.rank() >= 4 && !x.is_contiguous() && x.strides() == channels_last_strides(x.shape());
}

}  // namespace memfathom
