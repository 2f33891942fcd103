// Losses of language models: as transformers computes them from logits, and fused with the head.
#pragma once

#include <cstdint>

#include "estimator/models/blocks/settings.h"
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

// Whether transformers' Trainer smooths the labels of a model that has a loss of its own.
inline bool trainer_smooths_labels(const ModelSettings& settings) {
  return settings.label_smoothing > 0 && !loss_is_in_script(settings);
}

// The loss of transformers' Trainer with label_smoothing_factor, which leaves the model's own out:
// logits [.., V] in their own type; `shifts` as for causal models, by a copy of the logits.
Tensor smoothed_loss(const Tensor& logits, const Tensor& labels, bool shifts);

// The causal loss, fused with the head whose matrix is `weight`: the logits of all
// tokens never exist.
Tensor fused_causal_loss(const Tensor& hidden, const Tensor& weight, const Tensor& labels);

}  // namespace memfathom
