// Finite differences: the numerical gradient of a scalar function of a tensor, in fp64.
#pragma once

#include <functional>

#include "tests/kernels/devices/reference/host_tensor.h"

namespace memfathom::testing {

// Central differences of `loss` by every element of `x`, which is restored.
inline HostTensor numerical_gradient(HostTensor& x, const std::function<double()>& loss,
                                     double step = 1e-5) {
  HostTensor gradient(x.operand().shape);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double value = x.get(i);
    x.set(i, value + step);
    const double above = loss();
    x.set(i, value - step);
    const double below = loss();
    x.set(i, value);
    gradient.set(i, (above - below) / (2 * step));
  }
  return gradient;
}

// sum(a * b): with a fixed random b, a scalar function that depends on every element of a.
inline double weighted_sum(const HostTensor& a, const HostTensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) sum += a.get(i) * b.get(i);
  return sum;
}

}  // namespace memfathom::testing
