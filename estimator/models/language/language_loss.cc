#include "estimator/models/language/language_loss.h"

#include <algorithm>
#include <bit>

#include "kernels/ops/arithmetic.h"
#include "kernels/ops/loss.h"
#include "kernels/ops/views.h"
#include "kernels/tensor/recording.h"

namespace memfathom {
namespace {

constexpr int kLabelsArePadded = 448;

// labels[..., 1:].contiguous(): a copy, but for a single row.
Tensor from_second(const Tensor& labels) { return contiguous(slice(labels, 1, 1, labels.size(1))); }

Tensor padded_by_one(const Tensor& labels) {
  static constexpr std::int64_t kPairs[] = {0, 1};
  return pad(labels, kPairs);
}

}  // namespace

Tensor causal_lm_loss(const Tensor& logits_in, const Tensor& labels, const CausalLoss& form) {
  const std::int64_t vocabulary = logits_in.size(-1);
  const bool shifts_logits = form.transformers_version < kLabelsArePadded;
  Tensor logits = logits_in;
  if (form.always_fp32 || !shifts_logits) logits = to_dtype(logits, DType::kFp32);
  if (shifts_logits) {
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

Tensor fused_head_loss(const Tensor& hidden, const Linear& head, const Tensor& labels) {
  Session& session = hidden.session();
  const Tensor wanted = from_second(padded_by_one(labels));
  Recording tape(session, "FusedLinearCrossEntropy", {&hidden, &head.weight});
  const std::int64_t rows = wanted.elements();
  const std::int64_t width = hidden.size(-1);
  const std::int64_t vocabulary = head.weight.size(0);
  // As many chunks as keep a chunk's logits about as large as the hidden states.
  const std::int64_t factor = (vocabulary + width - 1) / width;
  const auto step = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>((rows + factor - 1) / factor)));
  Tensor dhidden;
  Tensor dweight;
  if (tape.needs(0)) dhidden = session.zeros(hidden.shape(), hidden.dtype());
  if (tape.needs(1)) dweight = session.zeros(head.weight.shape(), head.weight.dtype());
  const Tensor losses = session.zeros({rows}, DType::kFp32);
  for (std::int64_t begin = 0; begin < rows; begin += step) {
    const std::int64_t count = std::min(step, rows - begin);
    session.before_gemm(false);
    const Tensor logits = session.empty({count, vocabulary}, hidden.dtype());
    // The logits' gradient takes their place; its products are added to the gradients.
    Tensor product;
    if (dhidden) product = session.empty({count, width}, hidden.dtype());
    if (dweight) product = session.empty({vocabulary, width}, head.weight.dtype());
  }
  Tensor loss = session.empty({}, DType::kFp32);
  tape.save(dhidden);
  tape.save(dweight);
  tape.finish(loss, [](Backward& b) {
    if (b.needs(0)) b.give(0, b.saved(0));
    if (b.needs(1)) b.give(1, b.saved(1));
  });
  return loss;
}

}  // namespace memfathom
