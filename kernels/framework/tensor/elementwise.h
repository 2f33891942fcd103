// Element-wise and reduction kernels without history, used by operations and the backward engine.
#pragma once

#include <array>
#include <initializer_list>

#include "kernels/framework/device/calls.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// One kernel into a new tensor of the broadcast shape.
Tensor elementwise(Elementwise op, DType dtype, std::initializer_list<const Tensor*> inputs,
                   std::array<double, 4> scalars = {});
// The same into an existing tensor; the inputs broadcast to its shape.
void elementwise_into(Elementwise op, const Tensor& out,
                      std::initializer_list<const Tensor*> inputs, std::array<double, 4> scalars);

// Reduces `x` to the extents `reduced`, whose reduced dimensions are 1.
Tensor reduce_to(Reduction op, const Tensor& x, const Shape& reduced, DType dtype);
// The inverse of broadcasting: sums over the dimensions that are missing or 1 in `shape`.
Tensor sum_to_shape(const Tensor& x, const Shape& shape);

void add_into(const Tensor& target, const Tensor& x);
void copy_into(const Tensor& target, const Tensor& x);

}  // namespace memfathom
