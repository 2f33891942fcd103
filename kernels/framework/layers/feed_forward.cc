#include "kernels/framework/layers/feed_forward.h"

#include "kernels/framework/ops/arithmetic.h"

namespace memfathom {

Tensor Mlp::operator()(const Tensor& x) const {
  Tensor t = up(x);
  t = activate(activation, t);
  return down(t);
}

Tensor GatedUnit::operator()(const Tensor& x) const {
  Tensor product;
  {
    Tensor gated = gate(x);
    gated = activate(activation, gated);
    product = mul(gated, up(x));
  }
  return down(product);
}

Mlp make_mlp(Builder& builder, std::int64_t hidden, std::int64_t inner, Activation activation) {
  Mlp mlp;
  mlp.activation = activation;
  mlp.up = make_linear(builder, "up", hidden, inner);
  mlp.down = make_linear(builder, "down", inner, hidden);
  return mlp;
}

GatedUnit make_gated_unit(Builder& builder, std::int64_t hidden, std::int64_t inner,
                          Activation activation) {
  GatedUnit mlp;
  mlp.activation = activation;
  mlp.gate = make_linear(builder, "gate_proj", hidden, inner, {.bias = false});
  mlp.up = make_linear(builder, "up_proj", hidden, inner, {.bias = false});
  mlp.down = make_linear(builder, "down_proj", inner, hidden, {.bias = false});
  return mlp;
}

}  // namespace memfathom
