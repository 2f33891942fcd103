#include "estimator/models/language/experts.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/ops/arithmetic.h"
#include "kernels/ops/loss.h"
#include "kernels/ops/views.h"
#include "kernels/tensor/recording.h"

namespace memfathom {
namespace {

// x[index]: rows of x. The gradient is a tensor of zeros of x's size into which rows are added.
Tensor gather_rows(const Tensor& x, const Tensor& index) {
  Session& session = x.session();
  Recording tape(session, "index", {&x});
  tape.save(index);
  Shape shape = x.shape();
  shape[0] = index.elements();
  Tensor out = session.empty(shape, x.dtype());
  tape.finish(out, [from = x.shape(), dtype = x.dtype()](Backward& b) {
    const Tensor rows = b.saved(0);
    Tensor dx = b.session().zeros(from, dtype);
    const Tensor sorted = b.session().kernel_temporary(rows.shape(), DType::kInt64);
    const Tensor origins = b.session().kernel_temporary(rows.shape(), DType::kInt64);
    b.give(0, std::move(dx));
  });
  return out;
}

// whole.index_add_(0, index, rows)
void add_rows(Tensor& whole, const Tensor& index, const Tensor& rows) {
  Recording tape(whole.session(), "index_add_", {&whole, &rows});
  tape.save(index);
  Tensor changed = whole.detach();
  tape.finish(changed, [shape = rows.shape()](Backward& b) {
    if (b.needs(1)) b.give(1, b.session().empty(shape, b.gradient().dtype()));
    if (b.needs(0)) b.give(0, b.gradient());
  });
  whole = changed;
}

struct Routing {
  Tensor weights;  // [T, per token], in the tokens' type
  Tensor chosen;   // [T, per token], int64
};

// torch.topk: values and indices; the gradient is scattered into zeros.
Routing top(const Tensor& probabilities, std::int64_t count) {
  Session& session = probabilities.session();
  Recording tape(session, "topk", {&probabilities});
  const Shape shape{probabilities.size(0), count};
  Routing routing{session.empty(shape, probabilities.dtype()), session.empty(shape, DType::kInt64)};
  tape.save(routing.chosen);
  tape.finish(routing.weights, [from = probabilities.shape(), dtype = probabilities.dtype()](
                                   Backward& b) { b.give(0, b.session().zeros(from, dtype)); });
  return routing;
}

Routing route(const Linear& router, const Tensor& tokens, std::int64_t per_token, Tensor& logits) {
  logits = router(tokens);
  Routing routing;
  {
    const Tensor probabilities = softmax_fp32(logits);
    routing = top(probabilities, per_token);
  }
  {
    const Tensor total = sum(routing.weights, {-1}, true);
    routing.weights = div(routing.weights, total);
  }
  routing.weights = to_dtype(routing.weights, tokens.dtype());
  return routing;
}

}  // namespace

Experts::Experts(Builder& builder, const ExpertsPlan& plan) : plan_(plan) {
  const PathScope scope(builder, "block_sparse_moe");
  // bitsandbytes and PEFT's "all-linear" take the router as any other linear layer.
  router_ = make_linear(builder, "gate", plan.hidden, plan.experts, {.bias = false});
  for (std::int64_t i = 0; i < plan.experts; ++i) {
    const PathScope expert(builder, "experts", i);
    GatedMlp mlp;
    mlp.activation = plan.activation;
    mlp.gate = make_linear(builder, "w1", plan.hidden, plan.ffn, {.bias = false});
    mlp.down = make_linear(builder, "w2", plan.ffn, plan.hidden, {.bias = false});
    mlp.up = make_linear(builder, "w3", plan.hidden, plan.ffn, {.bias = false});
    experts_.push_back(std::move(mlp));
  }
}

Tensor Experts::operator()(const Tensor& x) const {
  Session& session = x.session();
  if (session.computes()) {
    throw Error(ErrorKind::kInput,
                "mixtures of experts are kept as accounts only; measure a model without experts");
  }
  const Tensor tokens = view(x, {-1, plan_.hidden});
  Tensor logits;
  const Routing routing = route(router_, tokens, plan_.per_token, logits);
  Tensor whole = session.zeros(tokens.shape(), tokens.dtype());
  const Tensor chosen_mask =
      session.zeros({tokens.size(0), plan_.per_token, plan_.experts}, DType::kInt64);
  const std::int64_t assigned = tokens.size(0) * plan_.per_token;
  for (std::int64_t i = 0; i < plan_.experts; ++i) {
    const std::int64_t share = assigned / plan_.experts + (i < assigned % plan_.experts ? 1 : 0);
    if (share == 0) continue;
    const Tensor positions = session.empty({share}, DType::kInt64);
    const Tensor rows = session.empty({share}, DType::kInt64);
    const Tensor current = gather_rows(tokens, rows);
    Tensor result = experts_[static_cast<std::size_t>(i)](current);
    {
      const Tensor weights = unsqueeze(gather_rows(view(routing.weights, {-1}), rows), 1);
      result = mul(result, weights);
    }
    add_rows(whole, rows, result);
  }
  return view(whole, x.shape());
}

}  // namespace memfathom
