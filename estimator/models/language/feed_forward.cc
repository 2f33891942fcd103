#include "estimator/models/language/feed_forward.h"

#include <utility>
#include <vector>

#include "kernels/ops/arithmetic.h"
#include "kernels/ops/views.h"

namespace memfathom {

Tensor GatedMlp::operator()(const Tensor& x) const {
  Tensor product = gate(x);
  product = activate(activation, product);
  {
    const Tensor wide = up(x);
    product = mul(product, wide);
  }
  return down(product);
}

Tensor FusedGatedMlp::operator()(const Tensor& x) const {
  Tensor states = gate_up(x);
  std::vector<Tensor> halves = chunk(states, 2, -1);
  states = halves[1];
  {
    const Tensor active = activate(activation, halves[0]);
    states = mul(states, active);
  }
  halves.resize(1);  // Python's `gate` keeps the whole product alive
  return down(states);
}

Tensor PlainMlp::operator()(const Tensor& x) const {
  Tensor states = first(x);
  states = activate(activation, states);
  return second(states);
}

}  // namespace memfathom
