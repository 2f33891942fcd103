#include "estimator/models/blocks/feed_forward.h"

#include <utility>
#include <vector>

#include "estimator/models/blocks/sequence_shards.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {

Tensor GatedMlp::operator()(const Tensor& x) const {
  Tensor product = linear_over_shards(gate, x, shards);
  product = activate(activation, product);
  {
    const Tensor wide = linear_over_shards(up, x, shards);
    product = mul(product, wide);
  }
  product = down(product);
  return scatter_positions(product, shards);
}

Tensor FusedGatedMlp::operator()(const Tensor& x) const {
  Tensor states = linear_over_shards(gate_up, x, shards);
  std::vector<Tensor> halves = chunk(states, 2, -1);
  states = halves[1];
  {
    const Tensor active = activate(activation, halves[0]);
    states = mul(states, active);
  }
  halves.resize(1);  // Python's `gate` keeps the whole product alive
  states = down(states);
  return scatter_positions(states, shards);
}

Tensor PlainMlp::operator()(const Tensor& x) const {
  Tensor states = first(x);
  states = activate(activation, states);
  return second(states);
}

}  // namespace memfathom
