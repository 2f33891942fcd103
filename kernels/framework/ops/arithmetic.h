// Arithmetic: sums, products, powers, casts and reductions, each saving what PyTorch's autograd
// saves.
#pragma once

#include <initializer_list>

#include "kernels/framework/tensor/elementwise.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

Tensor add(const Tensor& a, const Tensor& b, double alpha = 1);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor add_scalar(const Tensor& x, double value);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul_scalar(const Tensor& x, double value);
Tensor div(const Tensor& a, const Tensor& b);
Tensor div_scalar(const Tensor& x, double value);
Tensor neg(const Tensor& x);
Tensor pow_scalar(const Tensor& x, double exponent);
Tensor rsqrt(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor absolute(const Tensor& x);

// x.to(dtype): returns x itself if it already has that type.
Tensor to_dtype(const Tensor& x, DType dtype);
// Always a contiguous copy, as made by reshape() and contiguous().
Tensor clone(const Tensor& x);
Tensor contiguous(const Tensor& x);

// Over the given dimensions.
Tensor sum(const Tensor& x, std::initializer_list<int> dims, bool keep_dims);
Tensor mean(const Tensor& x, std::initializer_list<int> dims, bool keep_dims);
Tensor sum_all(const Tensor& x);
Tensor mean_all(const Tensor& x);

// In place on a result of the forward pass: x *= value, x += y. The history moves with the tensor.
void add_in_place(Tensor& x, const Tensor& y);
void mul_scalar_in_place(Tensor& x, double value);

}  // namespace memfathom
