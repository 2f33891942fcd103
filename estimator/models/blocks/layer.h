// Layer: a function from tensor to tensor, which owns its parameters.
#pragma once

#include <functional>
#include <vector>

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

using Layer = std::function<Tensor(const Tensor&)>;

inline Tensor run_layers(const std::vector<Layer>& layers, const Tensor& x) {
  Tensor t = x;
  for (const Layer& layer : layers) t = layer(t);
  return t;
}

}  // namespace memfathom
