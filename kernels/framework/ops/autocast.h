// Autocast: the casts that torch.autocast inserts before an operation.
#pragma once

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// For operations on the lower-precision list: the argument in autocast's type. Casts of trainable
// fp32 leaves are cached until autocast ends; other tensors are cast at each use.
Tensor autocast_to_lower(const Tensor& x);

// For operations on the fp32 list.
Tensor autocast_to_fp32(const Tensor& x);

}  // namespace memfathom
