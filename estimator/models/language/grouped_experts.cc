#include <utility>

#include "estimator/models/language/experts.h"
#include "estimator/models/language/gather_rows.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/arithmetic.h"
#include "kernels/ops/views.h"
#include "kernels/tensor/recording.h"

namespace memfathom {
namespace {

// torch's grouped_mm of [S, in] with [experts, out, in]: it is no operation of autocast, the input
// follows the weights' type.
Tensor grouped_product(const Tensor& input, const Tensor& weight) {
  Session& session = input.session();
  const Tensor x = to_dtype(input, weight.dtype());
  Recording tape(session, "_grouped_mm", {&x, &weight});
  // Each operand is kept for the other's gradient, as of every product.
  tape.save(tape.needs(1) ? x : Tensor());
  tape.save(tape.needs(0) ? weight : Tensor());
  Tensor out = session.empty({x.size(0), weight.size(1)}, weight.dtype());
  tape.finish(out, [inputs = x.shape(), weights = weight.shape(), dtype = x.dtype()](Backward& b) {
    const Tensor kept_x = b.saved(0);
    const Tensor kept_weight = b.saved(1);
    if (b.needs(0)) b.give(0, b.session().empty(inputs, dtype));
    if (b.needs(1)) b.give(1, b.session().empty(weights, dtype));
  });
  return out;
}

// What sorting the choices by expert makes: the sorted ids, their places, and the way back.
struct Order {
  Tensor sorted, places, offsets;
};

Order sort_by_expert(const Tensor& chosen, std::int64_t experts) {
  Session& session = chosen.session();
  const Shape flat{chosen.elements()};
  Order order{session.empty(flat, DType::kInt64), session.empty(flat, DType::kInt64), {}};
  const Tensor narrow = session.empty(flat, DType::kInt32);
  const Tensor counts = session.empty({experts}, DType::kInt32);
  order.offsets = session.empty({experts}, DType::kInt32);
  return order;
}

Tensor gated(Activation activation, const Tensor& both) {
  const std::vector<Tensor> parts = chunk(both, 2, -1);
  const Tensor gate = activate(activation, parts[0]);
  return mul(gate, parts[1]);
}

}  // namespace

GroupedExperts::GroupedExperts(Builder& builder, const ExpertsPlan& plan) : plan_(plan) {
  const PathScope scope(builder, "mlp");
  router_.weight = builder.parameter("gate.weight", {plan.experts, plan.hidden});
  gate_up_ = builder.parameter("experts.gate_up_proj", {plan.experts, 2 * plan.ffn, plan.hidden});
  down_ = builder.parameter("experts.down_proj", {plan.experts, plan.hidden, plan.ffn});
}

Tensor GroupedExperts::operator()(const Tensor& x) const {
  Session& session = x.session();
  refuse_to_compute(session);
  const Tensor tokens = view(x, {-1, plan_.hidden});
  const Routing routing = route(router_, tokens, plan_.per_token, plan_.router);
  const Order order = sort_by_expert(routing.chosen, plan_.experts);
  Tensor selected;
  {
    const Tensor origins = session.empty(order.places.shape(), DType::kInt64);
    selected = gather_rows(tokens, origins);
  }
  const Tensor weights = gather_rows(view(routing.weights, {-1}), order.places);
  Tensor result = grouped_product(selected, gate_up_);
  result = gated(plan_.activation, result);
  result = grouped_product(result, down_);
  Tensor weighted = mul(result, unsqueeze(weights, 1));
  const Tensor back = session.empty(order.places.shape(), DType::kInt64);
  weighted = gather_rows(weighted, back);
  Tensor whole = sum(view(weighted, {tokens.size(0), plan_.per_token, plan_.hidden}), {1}, false);
  whole = to_dtype(whole, tokens.dtype());
  return view(whole, x.shape());
}

}  // namespace memfathom
