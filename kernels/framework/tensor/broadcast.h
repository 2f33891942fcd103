// Broadcast: extents, strides and type of an element-wise result, by PyTorch's rules.
#pragma once

#include <initializer_list>

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// The extents to which both broadcast; throws Error(kInput) when they do not.
Shape broadcast_shapes(const Shape& a, const Shape& b);

// PyTorch's promotion between floating and complex types: the wider one wins, fp16 with bf16 gives
// fp32.
DType promote(DType a, DType b);

// The strides of a result of extents `shape`: dense, dimensions ordered as in the inputs (first
// input first).
Shape result_strides(const Shape& shape, std::initializer_list<const Tensor*> inputs);

// The operand of `tensor` stretched to `shape` with strides of 0.
Operand broadcast_operand(const Tensor& tensor, const Shape& shape);

}  // namespace memfathom
