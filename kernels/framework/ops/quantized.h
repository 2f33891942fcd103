// Products with quantized weights: dequantised into a transient matrix at each use, forward and
// backward.
#pragma once

#include "core/shape.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// A matrix as bitsandbytes, GPTQ, AWQ or an fp8 checkpoint stores it.
struct QuantizedWeight {
  Tensor packed;         // two weights a byte, or int8; int32 of GPTQ and AWQ
  Tensor scales;         // fp32 per 64 weights; a byte each when they are quantized themselves
  Tensor second_scales;  // fp32 per 256 of those
  Tensor zeros, order;   // of GPTQ and AWQ: packed zero points; the group of each column
  Shape shape;           // [out, in]
  bool eight_bit = false;
  bool direct = false;  // the product's kernel reads the packed weights; no matrix is made of them
};

// x . W^T (+ bias). Only the input can have a gradient. Accounts only: a device that computes is
// refused.
Tensor linear_quantized(const Tensor& x, const QuantizedWeight& weight, const Tensor& bias);

}  // namespace memfathom
