// Attention of transformers models: the library's eager code, or the framework's kernels behind its
// sdpa interface.
#pragma once

#include <cstdint>

#include "estimator/models/blocks/settings.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// How one family's attention is computed.
struct AttentionStyle {
  AttentionImplementation implementation = AttentionImplementation::kAuto;
  bool causal = true;
  double dropout = 0;  // on the weights, in training
  double scale = 1;
  bool softmax_in_fp32 =
      true;  // eager: softmax(dtype=fp32) and back, as Llama; else in the scores' type, as GPT-2
  bool weights_in_values_type =
      false;                   // eager without fp32: cast back after autocast's fp32 softmax
  bool raises_scores = false;  // eager: torch.max(scores, least number), which saves the scores
  double softcap = 0;          // eager: cap * tanh(scores / cap)
  Tensor sinks;  // eager: a score of each head's own that the softmax sees and nobody reads
};

struct Attended {
  Tensor output;   // [b, s, heads, d]
  Tensor weights;  // eager only: the caller holds them as long as Python's locals do
};

// q [b, heads, s, d], k and v [b, kv_heads, t, d]; the mask is boolean for kernels, numbers for
// eager, or undefined.
Attended attend(const AttentionStyle& style, const Tensor& q, const Tensor& k, const Tensor& v,
                const Tensor& mask);

// [b, s, heads * d] -> [b, heads, s, d], a view.
Tensor split_heads(const Tensor& x, std::int64_t head_size);
// [b, s, heads, d] -> [b, s, heads * d].
Tensor merge_heads(const Tensor& x);

}  // namespace memfathom
