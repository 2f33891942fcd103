#include "estimator/models/language/routing.h"

#include "kernels/ops/arithmetic.h"
#include "kernels/ops/loss.h"
#include "kernels/tensor/recording.h"

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

}  // namespace

Routing route(const Linear& router, const Tensor& tokens, std::int64_t per_token,
              const RouterPlan& plan) {
  Routing routing;
  routing.logits = router(tokens);
  {
    const Tensor probabilities = softmax_fp32(routing.logits);
    take_top(probabilities, per_token, routing);
  }
  if (plan.normalized) {
    const Tensor total = sum(routing.weights, {-1}, true);
    routing.weights = div(routing.weights, total);
  }
  if (plan.narrow) routing.weights = to_dtype(routing.weights, routing.logits.dtype());
  return routing;
}

}  // namespace memfathom
