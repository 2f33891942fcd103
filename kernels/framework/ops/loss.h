// Losses, softmax and dropout.
#pragma once

#include <cstdint>

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

Tensor softmax(const Tensor& x, int dim = -1);
Tensor log_softmax(const Tensor& x, int dim = -1);
// F.softmax(x, dim, dtype=fp32): one kernel for fp16; bf16 is converted first.
Tensor softmax_fp32(const Tensor& x, int dim = -1);

// F.cross_entropy(logits [N, C] or [N, C, spatial...], int64 targets): mean over targets that are
// not ignored.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, double label_smoothing = 0);

enum class PairLoss : std::uint8_t { kMse, kL1, kSmoothL1, kBce, kBceWithLogits };
// Mean over elements of x against a target without a gradient.
Tensor pair_loss(PairLoss loss, const Tensor& x, const Tensor& target);

// nn.Dropout in training: saves a mask of one byte per element. p = 0 is the identity.
Tensor dropout(const Tensor& x, double p);
// The in-place form has no fused kernel: it saves noise of x's type and multiplies by it.
void dropout_in_place(Tensor& x, double p);

}  // namespace memfathom
