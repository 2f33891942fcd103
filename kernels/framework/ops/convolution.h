// Convolutions in one, two and three dimensions, also transposed, with cuDNN's workspace per call.
#pragma once

#include <cstdint>

#include "core/shape.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

struct ConvolutionOptions {
  Shape stride, padding, dilation;  // one extent per spatial dimension
  Shape output_padding;             // transposed only
  std::int64_t groups = 1;
  bool transposed = false;
};

// x [N, C, spatial...], weight [out, in/groups, spatial...] (transposed: [in, out/groups,
// spatial...]).
Tensor convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const ConvolutionOptions& options);

// Extents of the result; throws Error(kInput) when the kernel does not fit into the input.
Shape convolution_shape(const Shape& x, const Shape& weight, const ConvolutionOptions& options);

}  // namespace memfathom
