// Layers of the self-test: small instances of every kind, run forward and backward on any device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/shape.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom::selftest {

using TestLayer = std::function<Tensor(const Tensor&)>;

struct LayerCase {
  std::string name;
  Shape input;
  std::function<TestLayer(Builder&)> make;
  double tolerance = 1e-4;
  DType dtype = DType::kFp32;  // of the input and the parameters
};

std::vector<LayerCase> layer_cases();

// Numbers that depend only on the position: the same on every device.
void fill(Device& device, const Tensor& tensor, std::uint64_t seed);

// A layer's output, its input's gradient and each parameter's gradient, for the sum of squares of
// the output; empty on a device that does not compute. Calls `after_backward` before anything is
// read back.
std::vector<std::vector<float>> run_layer(Session& session, const LayerCase& layer_case,
                                          const std::function<void()>& after_backward = {});

// The largest |got - wanted| / (1 + |wanted|); infinite if a number is missing or NaN.
double largest_difference(const std::vector<std::vector<float>>& got,
                          const std::vector<std::vector<float>>& wanted);

}  // namespace memfathom::selftest
