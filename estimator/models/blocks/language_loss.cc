#include "estimator/models/blocks/language_loss.h"

#include <utility>

#include "kernels/framework/layers/language_head.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {
namespace {

// labels[..., 1:].contiguous(): a copy, but for a single row.
Tensor from_second(const Tensor& labels) { return contiguous(slice(labels, 1, 1, labels.size(1))); }

Tensor padded_by_one(const Tensor& labels) {
  static constexpr std::int64_t kPairs[] = {0, 1};
  return pad(labels, kPairs);
}

Shape one_per_row(Shape shape) {
  shape[-1] = 1;
  return shape;
}

// The scores of the labels. The derivative is made of zeros, to which fake tensors add out of
// place.
Tensor gathered(const Tensor& scores, const Tensor& index) {
  Session& session = scores.session();
  Recording tape(session, "gather", {&scores});
  tape.save(index);
  tape.save(scores);
  Tensor out = session.empty(one_per_row(scores.shape()), scores.dtype());
  tape.finish(out, [wanted = scores.shape(), dtype = scores.dtype()](Backward& b) {
    Tensor placed = b.session().zeros(wanted, dtype);
    if (!b.session().policy().in_place_shortcuts) {
      const Tensor zeros = std::move(placed);
      placed = b.session().empty(wanted, dtype);
    }
    b.give(0, std::move(placed));
  });
  return out;
}

// sum(dim=-1, keepdim=True, dtype=torch.float32)
Tensor summed_in_fp32(const Tensor& scores) {
  Session& session = scores.session();
  Recording tape(session, "sum", {&scores});
  Tensor out = session.empty(one_per_row(scores.shape()), DType::kFp32);
  tape.finish(out,
              [wanted = scores.shape()](Backward& b) { b.give(0, expand(b.gradient(), wanted)); });
  return out;
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

// LabelSmoother: the negated log probabilities have a name to its end.
Tensor smoothed_loss(const Tensor& logits, const Tensor& labels, bool shifts) {
  Session& session = logits.session();
  Tensor scores = logits;
  Tensor wanted = labels;
  if (shifts) {
    scores = contiguous(slice(logits, 1, 0, logits.size(1) - 1));
    wanted = from_second(labels);
  }
  const Tensor negated = mul_scalar(log_softmax(scores), -1);
  const Shape rows = one_per_row(negated.shape());
  const Tensor ignored = session.empty(rows, DType::kBool);
  const Tensor index = session.empty(rows, DType::kInt64);  // clamped
  const Tensor likelihood = gathered(negated, index);
  const Tensor smoothed = summed_in_fp32(negated);
  { const Tensor counted = session.empty(rows, DType::kInt64); }
  return add(sum_all(likelihood), sum_all(smoothed));
}

Tensor fused_causal_loss(const Tensor& hidden, const Tensor& weight, const Tensor& labels) {
  return fused_head_loss(hidden, weight, from_second(padded_by_one(labels)));
}

}  // namespace memfathom
