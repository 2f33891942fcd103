// Activations: one function for all kinds; each saves its input or its output, as PyTorch does.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

enum class Activation : std::uint8_t {
  kRelu,
  kGelu,
  kGeluTanh,
  kGeluNew,
  kGeluFast,
  kQuickGelu,
  kSilu,
  kMish,
  kTanh,
  kSigmoid,
  kLeakyRelu,
  kElu,
  kSoftplus,
  kSelu,
  kRelu6,
  kHardswish,
  kHardsigmoid,
  kReluSquared,  // relu2 of Nemotron
  kIdentity,
};

// The names of the contract and of Hugging Face: relu, gelu, gelu_new, gelu_pytorch_tanh, silu,
// swish, ...
std::optional<Activation> parse_activation(std::string_view name);

Tensor activate(Activation activation, const Tensor& x);
// In place where PyTorch supports it (relu_, silu_, ...): the result overwrites x.
void activate_in_place(Activation activation, Tensor& x);

Tensor prelu(const Tensor& x, const Tensor& weight);

}  // namespace memfathom
