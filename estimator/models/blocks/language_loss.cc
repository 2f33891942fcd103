#include "estimator/models/blocks/language_loss.h"

#include "kernels/framework/layers/language_head.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {
namespace {

// labels[..., 1:].contiguous(): a copy, but for a single row.
Tensor from_second(const Tensor& labels) { return contiguous(slice(labels, 1, 1, labels.size(1))); }

Tensor padded_by_one(const Tensor& labels) {
  static constexpr std::int64_t kPairs[] = {0, 1};
  return pad(labels, kPairs);
}

}  // namespace

Tensor causal_lm_loss(const Tensor& logits_in, const Tensor& labels, const CausalLoss& form) {
  const std::int64_t vocabulary = logits_in.size(-1);
  Tensor logits = logits_in;
  if (form.always_fp32 || !form.shifts_logits) logits = to_dtype(logits, DType::kFp32);
  if (form.shifts_logits) {
    const Tensor shifted = contiguous(slice(logits, 1, 0, logits.size(1) - 1));
    const Tensor wanted = from_second(labels);
    return cross_entropy(view(shifted, {-1, vocabulary}), view(wanted, {-1}));
  }
  const Tensor padded = padded_by_one(labels);
  const Tensor wanted = from_second(padded);
  logits = view(logits, {-1, vocabulary});
  return cross_entropy(logits, view(wanted, {-1}));
}

Tensor token_loss(const Tensor& logits, const Tensor& labels) {
  return cross_entropy(view(logits, {-1, logits.size(-1)}), view(labels, {-1}));
}

Tensor shifted_right(const Tensor& labels) {
  Session& session = labels.session();
  Tensor shifted = session.zeros(labels.shape(), DType::kInt64);
  { const Tensor moved = session.empty({labels.size(0), labels.size(1) - 1}, DType::kInt64); }
  const Tensor ignored = session.empty(labels.shape(), DType::kBool);
  return shifted;
}

Tensor masked_lm_loss(const Tensor& logits, const Tensor& labels) {
  return token_loss(to_dtype(logits, DType::kFp32), labels);
}

Tensor fused_causal_loss(const Tensor& hidden, const Tensor& weight, const Tensor& labels) {
  return fused_head_loss(hidden, weight, from_second(padded_by_one(labels)));
}

}  // namespace memfathom
