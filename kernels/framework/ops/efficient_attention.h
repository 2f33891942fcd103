// efficient_attention: what the backward pass of PyTorch's memory-efficient attention allocates in
// C++, where no dispatcher sees it.
#pragma once

#include "core/bytes.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "kernels/framework/tensor/framework_policy.h"

namespace memfathom {

struct EfficientAttentionBackward {
  Bytes
      products;  // gradient times output, freed before the workspace; none if the kernel sums them
  Bytes row_sums;
  Bytes workspace;  // the fp32 query gradient in tiles; key and value gradients of wide heads
};

// `q` and `k`: [batch, heads, length, head size].
EfficientAttentionBackward efficient_attention_backward(const FrameworkPolicy& policy, DType dtype,
                                                        const Shape& q, const Shape& k,
                                                        double dropout = 0);

}  // namespace memfathom
