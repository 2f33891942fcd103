// Feed-forward parts of transformers: plain MLP, SwiGLU, GEGLU.
#pragma once

#include <cstdint>

#include "kernels/framework/layers/linear.h"
#include "kernels/framework/ops/activation.h"

namespace memfathom {

struct Mlp {
  Linear up, down;
  Activation activation = Activation::kGelu;

  Tensor operator()(const Tensor& x) const;
};

// down(activation(gate(x)) * up(x)), without biases.
struct GatedUnit {
  Linear gate, up, down;
  Activation activation = Activation::kSilu;

  Tensor operator()(const Tensor& x) const;
};

Mlp make_mlp(Builder& builder, std::int64_t hidden, std::int64_t inner, Activation activation);
GatedUnit make_gated_unit(Builder& builder, std::int64_t hidden, std::int64_t inner,
                          Activation activation);

}  // namespace memfathom
