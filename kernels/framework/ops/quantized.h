// Products with quantized weights: each use, forward and backward, dequantizes the weights into a
// temporary matrix.
#pragma once

#include "core/shape.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// A matrix in the storage format of bitsandbytes, GPTQ, AWQ or an fp8 checkpoint.
struct QuantizedWeight {
  Tensor packed;         // two weights per byte, or int8; int32 for GPTQ and AWQ
  Tensor scales;         // fp32 per 64 weights; one byte each if the scales are quantized
  Tensor second_scales;  // fp32 per 256 of those
  Tensor zeros, order;   // GPTQ and AWQ: packed zero points; the group of each column
  Shape shape;           // [out, in]
  bool eight_bit = false;
  bool direct = false;  // the product's kernel reads packed weights; nothing is dequantized
};

// x . W^T (+ bias). Only the input can have a gradient. Memory accounting only: throws on a device
// that computes.
Tensor linear_quantized(const Tensor& x, const QuantizedWeight& weight, const Tensor& bias);

}  // namespace memfathom
