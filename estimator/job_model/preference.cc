#include "estimator/job_model/preference.h"

#include <vector>

#include "core/error.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

Shape without_last(const Shape& shape) {
  Shape rows;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows.push_back(shape[i]);
  return rows;
}

// x.gather(-1, index).squeeze(-1): one value per row; its gradient is a tensor of zeros with one
// value per row set.
Tensor gather_last(const Tensor& x) {
  Session& session = x.session();
  Recording tape(session, "gather", {&x});
  Tensor out = session.empty(without_last(x.shape()), x.dtype());
  tape.finish(out, [wanted = x.shape(), dtype = x.dtype()](Backward& b) {
    b.give(0, b.session().zeros(wanted, dtype));
  });
  return out;
}

// torch.logsumexp over the last dimension; x is kept, exponentials are made again in backward.
Tensor log_sum_exp(const Tensor& x) {
  Session& session = x.session();
  Recording tape(session, "logsumexp", {&x});
  tape.save(x);
  Tensor out = session.empty(without_last(x.shape()), x.dtype());
  { const Tensor exponentials = session.kernel_temporary(x.shape(), x.dtype()); }
  tape.finish(out, [](Backward& b) {
    const Tensor x_saved = b.saved(0);
    Tensor weights = b.session().empty(x_saved.shape(), x_saved.dtype());
    weights = b.session().empty(x_saved.shape(), x_saved.dtype());
    b.give(0, std::move(weights));
  });
  return out;
}

// TRL's selective_log_softmax: row by row, to save memory; in fp32 by logsumexp, in 16 bit by
// log_softmax, whose results are all kept.
Tensor token_scores(const Tensor& logits) {
  std::vector<Tensor> rows;
  if (logits.dtype() == DType::kFp32 || logits.dtype() == DType::kFp64) {
    const Tensor selected = gather_last(logits);
    for (const Tensor& row : unbind(logits, 0)) rows.push_back(log_sum_exp(row));
    return sub(selected, stack(rows, 0));
  }
  Tensor scores;
  for (const Tensor& row : unbind(logits, 0)) {
    scores = log_softmax(row);
    rows.push_back(gather_last(scores));
  }
  return stack(rows, 0);
}

// The answers' log-probabilities [2 * pairs].
Tensor answer_scores(const Tensor& shifted) { return sum(token_scores(shifted), {1}, false); }

// All positions but the last: a view, as TRL has it since 1.6 (from 0.29 to 1.5 it was a copy).
Tensor shifted(const Tensor& logits) { return slice(logits, 1, 0, logits.size(1) - 1); }

}  // namespace

void PreferenceNetwork::load_batch(std::int64_t size, bool targets) {
  pairs_ = size;
  policy_->load_batch(2 * size, targets);
  if (reference_.network) {
    const Scoped<ModuleIndex> module(session_.module, reference_.module);
    reference_.network->load_batch(2 * size, false);
  }
  if (reference_.kind == Reference::kPrecomputed) {
    const BatchScope scope(session_, {&precomputed_});
    precomputed_ = session_.zeros({2 * size}, DType::kFp32);
  }
}

bool PreferenceNetwork::set_length(std::int64_t length) {
  if (reference_.network) reference_.network->set_length(length);
  return policy_->set_length(length);
}

// Runs while the policy's graph is alive.
Tensor PreferenceNetwork::reference_scores() {
  if (reference_.kind == Reference::kNone) return {};
  if (reference_.kind == Reference::kPrecomputed) return precomputed_;
  const NoGrad no_grad(session_);
  const bool own = static_cast<bool>(reference_.network);
  const Scoped<ModuleIndex> module(session_.module, own ? reference_.module : session_.module);
  const Scoped<bool> evaluation(session_.training, !own && session_.training);
  const Scoped<bool> adapters(session_.adapters_enabled, own);
  const Tensor logits = own ? reference_.network->forward() : policy_->forward();
  const ComponentScope scope(session_, Component::kLogitsLoss);
  return answer_scores(shifted(logits));
}

Tensor PreferenceNetwork::loss(Tensor* output) {
  const Tensor logits = policy_->forward();
  if (logits.rank() != 3)
    throw Error(
        ErrorKind::kInput,
        "training.preference needs a language model, whose output is [batch, tokens, vocabulary]");
  const ComponentScope scope(session_, Component::kLogitsLoss);
  Tensor scores = answer_scores(shifted(logits));
  const Tensor reference = reference_scores();
  if (reference) scores = sub(scores, reference);
  const std::vector<Tensor> sides = chunk(scores, 2, 0);
  const Tensor margin = mul_scalar(sub(sides[0], sides[1]), 0.1);
  // -logsigmoid(m) = softplus(-m).
  Tensor result = mean_all(activate(Activation::kSoftplus, neg(margin)));
  if (output != nullptr) *output = logits;
  return result;
}

}  // namespace memfathom
