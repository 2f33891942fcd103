// Autocast: the casts that torch.autocast puts in front of an operation.
#pragma once

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// For operations on the lower-precision list: the argument in autocast's type. Casts of fp32 leaves
// that learn are made once and kept until autocast ends; everything else is cast at each use.
Tensor autocast_to_lower(const Tensor& x);

// For operations on the fp32 list.
Tensor autocast_to_fp32(const Tensor& x);

}  // namespace memfathom
