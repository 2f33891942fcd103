#include "estimator/models/blocks/experts.h"

#include "core/error.h"
#include "estimator/models/blocks/gather_rows.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
void refuse_to_compute(const Session& session) {
  if (!session.computes()) return;
  throw Error(ErrorKind::kInput,
              "mixtures of experts are kept as accounts only; measure a model without experts");
}

void make_correction(Builder& builder, const ExpertsPlan& plan, Router& router) {
  if (plan.router.kind != RouterKind::kSigmoid) return;
  router.correction =
      builder.buffer("gate.e_score_correction_bias", {plan.experts}, DType::kFp32, true);
}

Experts::Experts(Builder& builder, const ExpertsPlan& plan) : plan_(plan) {
  const PathScope scope(builder, plan.mixtral_names ? "block_sparse_moe" : "mlp");
  router_.plan = plan.router;
  router_.per_token = plan.per_token;
  const char* const names[] = {plan.mixtral_names ? "w1" : "gate_proj",
                               plan.mixtral_names ? "w2" : "down_proj",
                               plan.mixtral_names ? "w3" : "up_proj"};
  // bitsandbytes and PEFT's "all-linear" take the router as any other linear layer.
  router_.gate = make_linear(builder, "gate", plan.hidden, plan.experts, {.bias = false});
  make_correction(builder, plan, router_);
  for (std::int64_t i = 0; i < plan.experts; ++i) {
    const PathScope expert(builder, "experts", i);
    GatedMlp mlp;
    mlp.activation = plan.activation;
    mlp.gate = make_linear(builder, names[0], plan.hidden, plan.ffn, {.bias = false});
    mlp.down = make_linear(builder, names[1], plan.ffn, plan.hidden, {.bias = false});
    mlp.up = make_linear(builder, names[2], plan.hidden, plan.ffn, {.bias = false});
    experts_.push_back(std::move(mlp));
  }
}

Tensor Experts::operator()(const Tensor& x) const {
  Session& session = x.session();
  refuse_to_compute(session);
  const Tensor tokens = view(x, {-1, plan_.hidden});
  Routing routing = route(router_, tokens);
  routing.weights = to_dtype(routing.weights, tokens.dtype());
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
