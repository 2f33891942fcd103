// FeedForward: the gated and plain MLPs of language models.
#pragma once

#include <cstdint>

#include "kernels/framework/layers/linear.h"
#include "kernels/framework/ops/activation.h"

namespace memfathom {

// down(act(gate(x)) * up(x))
struct GatedMlp {
  Linear gate, up, down;
  Activation activation = Activation::kSilu;
  std::int64_t shards = 1;  // x and the result are one GPU's part of the positions

  Tensor operator()(const Tensor& x) const;
};

// Phi-3: gate and up are one matrix.
struct FusedGatedMlp {
  Linear gate_up, down;
  Activation activation = Activation::kSilu;
  std::int64_t shards = 1;

  Tensor operator()(const Tensor& x) const;
};

// second(act(first(x)))
struct PlainMlp {
  Linear first, second;
  Activation activation = Activation::kGelu;

  Tensor operator()(const Tensor& x) const;
};

}  // namespace memfathom
