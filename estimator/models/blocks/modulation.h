// Modulation: what diffusion transformers share around their norms and rotary tables.
#pragma once

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// layer_norm(x) * (1 + scale) + shift, with a row of scale and shift per sample.
Tensor modulated_norm(const Tensor& x, const Tensor& scale, const Tensor& shift);

// x + gate * change, with a row of gates per sample.
Tensor gated_sum(const Tensor& x, const Tensor& gate, const Tensor& change);

// Pairs of neighbours are rotated; everything in fp32, the result in the input's type.
Tensor rotated_in_pairs(const Tensor& x, const Tensor& cos, const Tensor& sin);

}  // namespace memfathom
