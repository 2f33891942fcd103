// language_head: a language model's output matrix and loss, computed in chunks of tokens.
#pragma once

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// Mean cross entropy of hidden [.., width] times weight [vocabulary, width], with one target per
// row. Computes the gradients in the forward pass (Liger's kernel), so the logits of all tokens
// never exist at once.
Tensor fused_head_loss(const Tensor& hidden, const Tensor& weight, const Tensor& targets);

}  // namespace memfathom
