// Linear: a linear layer with LoRA adapters and quantized weights, as PEFT and bitsandbytes run it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "kernels/framework/layers/builder.h"
#include "kernels/framework/ops/quantized.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// LoRA adapters of a linear layer: y + scale * B(A(dropout(x))).
struct LoraAdapter {
  Tensor a, b;
  double dropout = 0;
  double scale = 2;
};

struct Linear {
  Tensor weight, bias;
  bool transposed = false;  // GPT-2's Conv1D: weight [in, out]
  std::shared_ptr<LoraAdapter> lora;
  std::shared_ptr<QuantizedWeight> quantized;
  bool unfused = false;  // Falcon: x @ weight.T, then a separate add for the bias

  Tensor operator()(const Tensor& x) const;
};

struct LinearOptions {
  bool bias = true;
  bool transposed = false;
  bool unfused = false;
  bool head = false;  // the output matrix: not in "all-linear", quantized only on request
};

Linear make_linear(Builder& builder, std::string_view name, std::int64_t in, std::int64_t out,
                   LinearOptions options = {});

}  // namespace memfathom
