#include "estimator/models/blocks/experts.h"

#include "core/error.h"
#include "estimator/models/blocks/gather_rows.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
void reject_real_device(const Session& session) {
  if (!session.computes()) return;
  throw Error(ErrorKind::kInput,
              "mixtures of experts are kept as accounts only; measure a model without experts");
}

void make_correction(Builder& builder, const ExpertsConfig& cfg, Router& router) {
  if (cfg.router.kind != RouterKind::kSigmoid) return;
  router.correction =
      builder.buffer("gate.e_score_correction_bias", {cfg.experts}, DType::kFp32, true);
}

Experts::Experts(Builder& builder, const ExpertsConfig& cfg) : config_(cfg) {
  const PathScope scope(builder, cfg.mixtral_names ? "block_sparse_moe" : "mlp");
  router_.cfg = cfg.router;
  router_.per_token = cfg.per_token;
  const char* const names[] = {cfg.mixtral_names ? "w1" : "gate_proj",
                               cfg.mixtral_names ? "w2" : "down_proj",
                               cfg.mixtral_names ? "w3" : "up_proj"};
  if (casts_weight(cfg.router.kind)) {
    // A parameter and not nn.Linear: neither quantized nor adapted.
    router_.gate.weight = builder.parameter("gate.weight", {cfg.experts, cfg.hidden});
  } else {
    // bitsandbytes and PEFT's "all-linear" treat the router as any other linear layer.
    router_.gate = make_linear(builder, "gate", cfg.hidden, cfg.experts, {.bias = false});
  }
  make_correction(builder, cfg, router_);
  for (std::int64_t i = 0; i < cfg.experts; ++i) {
    const PathScope expert(builder, "experts", i);
    GatedMlp mlp;
    mlp.activation = cfg.activation;
    mlp.gate = make_linear(builder, names[0], cfg.hidden, cfg.ffn, {.bias = false});
    mlp.down = make_linear(builder, names[1], cfg.ffn, cfg.hidden, {.bias = false});
    mlp.up = make_linear(builder, names[2], cfg.hidden, cfg.ffn, {.bias = false});
    experts_.push_back(std::move(mlp));
  }
}

Tensor Experts::operator()(const Tensor& x) const {
  Session& session = x.session();
  reject_real_device(session);
  const Tensor tokens = view(x, {-1, config_.hidden});
  Routing routing = route(router_, tokens);
  routing.weights = to_dtype(routing.weights, tokens.dtype());
  Tensor whole = session.zeros(tokens.shape(), tokens.dtype());
  const Tensor chosen_mask =
      session.zeros({tokens.size(0), config_.per_token, config_.experts}, DType::kInt64);
  const std::int64_t assigned = tokens.size(0) * config_.per_token;
  for (std::int64_t i = 0; i < config_.experts; ++i) {
    const std::int64_t share =
        assigned / config_.experts + (i < assigned % config_.experts ? 1 : 0);
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
