// Sequence shards: hidden states of which each GPU of a tensor-parallel group holds a part of the
// positions (Megatron's sequence parallelism).
#pragma once

#include <cstdint>

#include "kernels/framework/layers/linear.h"

namespace memfathom {

// layer(x) over all positions, of which x holds one GPU's part. The whole input lives only while
// the product runs, forward and backward: what is kept is the part. Adapters and quantized weights
// keep the whole, as their libraries know nothing of this.
Tensor linear_over_shards(const Linear& layer, const Tensor& x, std::int64_t shards);

// All positions from the parts of all GPUs, and one GPU's part of a sum over them; each is the
// other's backward.
Tensor gather_positions(const Tensor& x, std::int64_t shards);
Tensor scatter_positions(const Tensor& x, std::int64_t shards);

}  // namespace memfathom
