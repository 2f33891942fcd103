#include "estimator/models/blocks/routing.h"

#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// torch.topk: values and indices; the gradient is scattered into zeros.
void take_top(const Tensor& probabilities, std::int64_t count, Routing& routing) {
  Session& session = probabilities.session();
  Recording tape(session, "topk", {&probabilities});
  const Shape shape{probabilities.size(0), count};
  routing.weights = session.empty(shape, probabilities.dtype());
  routing.chosen = session.empty(shape, DType::kInt64);
  tape.save(routing.chosen);
  tape.finish(routing.weights,
              [from = probabilities.shape(), dtype = probabilities.dtype()](Backward& b) {
                const Tensor kept = b.saved(0);
                b.give(0, b.session().zeros(from, dtype));
              });
}

// gather(1, chosen): the gradient is scattered into zeros.
Tensor gather_chosen(const Tensor& scores, const Tensor& chosen) {
  Session& session = scores.session();
  Recording tape(session, "gather", {&scores});
  tape.save(chosen);
  Tensor out = session.empty(chosen.shape(), scores.dtype());
  tape.finish(out, [from = scores.shape(), dtype = scores.dtype()](Backward& b) {
    const Tensor kept = b.saved(0);
    b.give(0, b.session().zeros(from, dtype));
  });
  return out;
}

// Which experts belong to the groups that stay: one truth value for each expert of each token.
Tensor mask_of_groups(const Tensor& scores, std::int64_t groups) {
  Session& session = scores.session();
  const std::int64_t tokens = scores.size(0);
  const Tensor group_scores = session.empty({tokens, groups}, scores.dtype());
  const Tensor places = session.empty({tokens, groups}, DType::kInt64);
  const Tensor marks = session.empty({tokens, groups}, scores.dtype());
  const Tensor spread = session.empty(scores.shape(), scores.dtype());
  const Tensor left_out = session.empty(scores.shape(), DType::kBool);
  return session.empty(scores.shape(), DType::kBool);
}

// masked_fill(~mask, value)
Tensor without(const Tensor& scores, const Tensor& mask) {
  Session& session = scores.session();
  Recording tape(session, "masked_fill", {&scores});
  tape.save(mask);
  Tensor out = session.empty(scores.shape(), scores.dtype());
  tape.finish(out, [](Backward& b) {
    const Tensor kept = b.saved(0);
    const Tensor gradient = b.gradient();
    b.give(0, b.session().empty(gradient.shape(), gradient.dtype()));
  });
  return out;
}

Tensor wide_logits(const Router& router, const Tensor& tokens) {
  Linear wide = router.gate;
  const Tensor states = to_dtype(tokens, DType::kFp32);
  wide.weight = to_dtype(router.gate.weight, DType::kFp32);
  return wide(states);
}

void choose_by_sigmoid(const Router& router, Routing& routing) {
  Session& session = routing.logits.session();
  const Tensor scores = activate(Activation::kSigmoid, routing.logits);
  {
    const NoGrad choice(session);
    Tensor corrected = add(scores, router.correction);
    corrected = without(corrected, mask_of_groups(corrected, router.cfg.groups));
    const Shape shape{corrected.size(0), router.per_token};
    const Tensor values = session.empty(shape, corrected.dtype());
    routing.chosen = session.empty(shape, DType::kInt64);
  }
  routing.weights = gather_chosen(scores, routing.chosen);
}

void choose(const Router& router, const Tensor& tokens, Routing& routing) {
  switch (router.cfg.kind) {
    case RouterKind::kSigmoid:
      routing.logits = wide_logits(router, tokens);
      return choose_by_sigmoid(router, routing);
    case RouterKind::kWideSoftmax: {
      routing.logits = wide_logits(router, tokens);
      Tensor scores = softmax_fp32(routing.logits);
      if (router.cfg.groups > 1)
        scores = without(scores, mask_of_groups(scores, router.cfg.groups));
      return take_top(scores, router.per_token, routing);
    }
    case RouterKind::kTopThenSoftmax:
      routing.logits = router.gate(tokens);
      if (router.cfg.wide_logits) routing.logits = to_dtype(routing.logits, DType::kFp32);
      take_top(routing.logits, router.per_token, routing);
      routing.weights = softmax(routing.weights);
      if (router.cfg.wide_logits) routing.weights = to_dtype(routing.weights, tokens.dtype());
      return;
    case RouterKind::kSoftmax: break;
  }
  routing.logits = router.gate(tokens);
  const Tensor probabilities = softmax_fp32(routing.logits);
  take_top(probabilities, router.per_token, routing);
}

}  // namespace

Routing route(const Router& router, const Tensor& tokens) {
  const RouterConfig& cfg = router.cfg;
  Routing routing;
  choose(router, tokens, routing);
  if (cfg.kind == RouterKind::kTopThenSoftmax) return routing;
  if (cfg.normalized && cfg.kind != RouterKind::kWideSoftmax) {
    const Tensor total = sum(routing.weights, {-1}, true);
    routing.weights = div(routing.weights, total);
  }
  if (casts_weight(cfg.kind))
    routing.weights = mul_scalar(routing.weights, 1);  // routed_scaling_factor
  if (cfg.narrow) routing.weights = to_dtype(routing.weights, routing.logits.dtype());
  return routing;
}

}  // namespace memfathom
