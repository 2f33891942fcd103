// The language model's head and its loss in one, chunk by chunk of tokens.
#pragma once

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// Mean cross entropy of hidden [.., width] times weight [vocabulary, width] against as many targets
// as there are rows. The gradients are computed in the forward pass (Liger's kernel), so the logits
// of all tokens never exist.
Tensor fused_head_loss(const Tensor& hidden, const Tensor& weight, const Tensor& targets);

}  // namespace memfathom
