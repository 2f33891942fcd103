#include "estimator/models/families/language/deberta/deberta_attention.h"

#include <cmath>

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// scores.gather(-1, index): keeps the scores, too, whose gradient is scattered into zeros.
Tensor gathered(const Tensor& scores, const Tensor& index, std::int64_t length) {
  Session& session = scores.session();
  Recording tape(session, "gather", {&scores});
  tape.save(scores);
  tape.save(index);
  Tensor out = session.empty({scores.size(0), scores.size(1), length}, scores.dtype());
  tape.finish(out, [](Backward& b) {
    const Tensor kept = b.saved(0);
    const Tensor where = b.saved(1);
    b.give(0, b.session().zeros(kept.shape(), kept.dtype()));
  });
  return out;
}

// x.masked_fill(~mask, least)
Tensor masked(const Tensor& x, const Tensor& mask) {
  Session& session = x.session();
  Recording tape(session, "masked_fill", {&x});
  tape.save(session.empty(mask.shape(), DType::kBool));
  Tensor out = session.empty(x.shape(), x.dtype());
  tape.finish(out, [](Backward& b) {
    const Tensor kept = b.saved(0);
    b.give(0, b.session().empty(b.gradient().shape(), b.gradient().dtype()));
  });
  return out;
}

// clamp(distances + span): which row of the table each pair reads.
Tensor rows_of(const Tensor& distances, bool negated) {
  Session& session = distances.session();
  Tensor moved;
  if (negated) moved = session.empty(distances.shape(), DType::kInt64);
  moved = session.empty(distances.shape(), DType::kInt64);
  return session.empty(distances.shape(), DType::kInt64);
}

}  // namespace

DebertaAttention::DebertaAttention(Builder& builder, std::int64_t hidden, std::int64_t heads,
                                   const DebertaDistances& distances, double dropout,
                                   double weights_dropout)
    : heads_(heads),
      head_size_(hidden / heads),
      distances_(distances),
      dropout_(dropout),
      weights_dropout_(weights_dropout) {
  const int factor = 1 + (distances.to_keys ? 1 : 0) + (distances.to_queries ? 1 : 0);
  scale_ = 1 / std::sqrt(static_cast<double>(head_size_ * factor));
  q_ = make_linear(builder, "query_proj", hidden, hidden);
  k_ = make_linear(builder, "key_proj", hidden, hidden);
  v_ = make_linear(builder, "value_proj", hidden, hidden);
  if (!distances.relative || distances.shared) return;
  if (distances.to_keys) distance_k_ = make_linear(builder, "pos_key_proj", hidden, hidden);
  if (distances.to_queries) distance_q_ = make_linear(builder, "pos_query_proj", hidden, hidden);
}

// [b, s, heads * d] to [b * heads, s, d], a copy.
Tensor DebertaAttention::in_heads(const Tensor& projected) const {
  const Tensor split = view(projected, {projected.size(0), projected.size(1), heads_, head_size_});
  return view(contiguous(permute(split, {0, 2, 1, 3})), {-1, projected.size(1), head_size_});
}

// The same for each sample.
Tensor DebertaAttention::repeated(const Tensor& projected, std::int64_t batch) const {
  const Tensor once = unsqueeze(in_heads(projected), 0);
  const Shape shape{batch, once.size(1), once.size(2), once.size(3)};
  return view(clone(expand(once, shape)), {-1, once.size(2), head_size_});
}

Tensor DebertaAttention::by_distance(const Tensor& q, const Tensor& k, const Pass& pass) const {
  const std::int64_t batch = q.size(0) / heads_;
  const std::int64_t length = q.size(1);
  const Tensor table = unsqueeze(dropout(pass.biases, dropout_), 0);
  Tensor queries;
  Tensor keys;
  if (distances_.shared || distances_.to_queries)
    queries = repeated(distances_.shared ? q_(table) : distance_q_(table), batch);
  if (distances_.shared || distances_.to_keys)
    keys = repeated(distances_.shared ? k_(table) : distance_k_(table), batch);
  // Python's names for them last until the score is returned.
  Tensor score;
  Tensor by_key;
  Tensor by_query;
  Tensor key_rows;
  if (distances_.to_keys) {
    by_key = bmm(q, transpose(keys, 1, 2));
    key_rows = rows_of(pass.positions, false);
    by_key = gathered(by_key, key_rows, length);
    score = add_scalar(mul_scalar(by_key, scale_), 0);  // 0 + it
  }
  if (distances_.to_queries) {
    const Tensor rows = rows_of(pass.positions, true);
    by_query = bmm(k, transpose(queries, 1, 2));
    by_query = transpose(gathered(by_query, rows, length), 1, 2);
    const Tensor scaled = mul_scalar(by_query, scale_);
    if (score) {
      add_in_place(score, scaled);
    } else {
      score = add_scalar(scaled, 0);
    }
  }
  return score;
}

Tensor DebertaAttention::operator()(const Tensor& x, const Pass& pass) const {
  const Tensor q = in_heads(q_(x));
  const Tensor k = in_heads(k_(x));
  const Tensor v = in_heads(v_(x));
  Tensor scores = bmm(q, mul_scalar(transpose(k, 1, 2), scale_));
  Tensor distant;
  if (distances_.relative && (distances_.to_keys || distances_.to_queries)) {
    distant = by_distance(q, k, pass);
    scores = add(scores, distant);
  }
  scores = view(scores, {x.size(0), heads_, x.size(1), x.size(1)});
  const Tensor truth = x.session().empty(pass.mask.shape(), DType::kBool);
  scores = masked(scores, truth);
  Tensor weights = softmax(scores);
  weights = dropout(weights, weights_dropout_);
  Tensor context = bmm(view(weights, {-1, x.size(1), x.size(1)}), v);
  context = view(context, {x.size(0), heads_, x.size(1), head_size_});
  context = contiguous(permute(context, {0, 2, 1, 3}));
  return view(context, {x.size(0), x.size(1), -1});
}

}  // namespace memfathom
