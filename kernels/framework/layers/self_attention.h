// Self-attention layers: separate projections, or torch's packed nn.MultiheadAttention.
#pragma once

#include <cstdint>

#include "kernels/framework/layers/linear.h"
#include "kernels/framework/ops/attention.h"

namespace memfathom {

struct SelfAttention {
  Linear q, k, v, o;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  AttentionImplementation implementation = AttentionImplementation::kAuto;
  bool causal = true;
  double dropout = 0;

  Tensor operator()(const Tensor& x) const;
};

struct SelfAttentionOptions {
  std::int64_t hidden = 0, heads = 1, kv_heads = 1;
  AttentionImplementation implementation = AttentionImplementation::kAuto;
  bool causal = true;
  bool bias = false;
  double dropout = 0;
};

SelfAttention make_self_attention(Builder& builder, const SelfAttentionOptions& options);

// nn.MultiheadAttention on (x, x, x), batch first.
struct MultiheadAttention {
  Tensor in_weight, in_bias;
  Linear out;
  std::int64_t heads = 1;
  double dropout = 0;
  bool need_weights = false;
  AttentionImplementation implementation = AttentionImplementation::kAuto;

  Tensor operator()(const Tensor& x) const;
};

MultiheadAttention make_multihead_attention(Builder& builder, std::int64_t hidden,
                                            std::int64_t heads);

// Attention without projections on q, k, v slices of one [batch, sequence, 3 * hidden] tensor; the
// heads of the output are not joined.
struct CoreAttention {
  std::int64_t heads = 1;
  AttentionImplementation implementation = AttentionImplementation::kAuto;
  bool causal = false;
  bool padding_mask = false;
  double dropout = 0;

  Tensor operator()(const Tensor& qkv) const;
};

}  // namespace memfathom
