// Losses of language models: as transformers computes them from logits, and fused with the head.
#pragma once

#include <cstdint>

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

struct CausalLoss {
  bool shifts_logits = false;  // see TransformersPolicy
  bool always_fp32 = true;     // whether the family's own code makes fp32 logits
};

// ForCausalLMLoss: logits [b, s, V] in fp32 against labels shifted by one. Older
// releases shift, and so copy, the logits instead, in the type that the family's own code gives
// them.
Tensor causal_lm_loss(const Tensor& logits, const Tensor& labels, const CausalLoss& form);

// Cross entropy of logits [b, s, V] in their own type against labels [b, s].
Tensor token_loss(const Tensor& logits, const Tensor& labels);

// The labels, one to the right: what the decoder of an encoder-decoder reads.
Tensor shifted_right(const Tensor& labels);

// ForMaskedLMLoss: the same with logits in fp32.
Tensor masked_lm_loss(const Tensor& logits, const Tensor& labels);

// The causal loss, fused with the head whose matrix is `weight`: the logits of all
// tokens never exist.
Tensor fused_causal_loss(const Tensor& hidden, const Tensor& weight, const Tensor& labels);

}  // namespace memfathom
