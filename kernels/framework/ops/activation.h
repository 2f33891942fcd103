// Activations: one function for all of them; each saves its input or its output, as PyTorch does.
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
  kIdentity,
};

// The contract's and Hugging Face's names: relu, gelu, gelu_new, gelu_pytorch_tanh, silu, swish,
// ...
std::optional<Activation> parse_activation(std::string_view name);

Tensor activate(Activation activation, const Tensor& x);
// In place where PyTorch can (relu_, silu_, ...): x's memory holds the result.
void activate_in_place(Activation activation, Tensor& x);

Tensor prelu(const Tensor& x, const Tensor& weight);

}  // namespace memfathom
