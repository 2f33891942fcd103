// Linear: a matrix with its adapters and its quantized form, as PEFT and bitsandbytes run them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "kernels/framework/layers/builder.h"
#include "kernels/framework/ops/quantized.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// Low-rank adapters beside a linear layer: y + scale * B(A(dropout(x))).
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
  bool unfused = false;  // Falcon's: x @ weight.T, and a sum where there is a bias

  Tensor operator()(const Tensor& x) const;
};

struct LinearOptions {
  bool bias = true;
  bool transposed = false;
  bool unfused = false;
  bool head = false;  // the output matrix: quantized only if the options say so, never adapted by
                      // "all-linear"
};

Linear make_linear(Builder& builder, std::string_view name, std::int64_t in, std::int64_t out,
                   LinearOptions options = {});

}  // namespace memfathom
