// Pooling and upsampling.
#pragma once

#include "core/shape.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

struct PoolOptions {
  Shape kernel, stride, padding;
  bool ceil_mode = false;
};

Tensor max_pool(const Tensor& x, const PoolOptions& options);
Tensor average_pool(const Tensor& x, const PoolOptions& options);
// Pools to a fixed spatial size; size 1 is a mean, as in PyTorch, and saves nothing.
Tensor adaptive_average_pool(const Tensor& x, const Shape& size);

enum class UpsampleMode { kNearest, kBilinear };
Tensor upsample(const Tensor& x, UpsampleMode mode, const Shape& size);

Tensor pixel_shuffle(const Tensor& x, std::int64_t factor);

}  // namespace memfathom
