#include "estimator/models/blocks/experts.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {

SparseMlp::SparseMlp(Builder& builder, const ExpertsConfig& cfg, bool grouped) : config_(cfg) {
  if (grouped) {
    grouped_.emplace(builder, cfg);
  } else {
    experts_.emplace(builder, cfg);
  }
  if (cfg.shared == SharedExpert::kNone) return;
  if (cfg.shared == SharedExpert::kFused) {
    const PathScope scope(builder, "shared_mlp");
    fused_.activation = cfg.activation;
    fused_.gate_up =
        make_linear(builder, "input_linear", cfg.hidden, 2 * cfg.shared_ffn, {.bias = false});
    fused_.down =
        make_linear(builder, "output_linear", cfg.shared_ffn, cfg.hidden, {.bias = false});
    return;
  }
  const PathScope scope(builder, "mlp");
  {
    const bool gated = cfg.shared == SharedExpert::kGated;
    const PathScope shared(builder, gated ? "shared_expert" : "shared_experts");
    shared_.activation = cfg.activation;
    shared_.gate = make_linear(builder, "gate_proj", cfg.hidden, cfg.shared_ffn, {.bias = false});
    shared_.up = make_linear(builder, "up_proj", cfg.hidden, cfg.shared_ffn, {.bias = false});
    shared_.down = make_linear(builder, "down_proj", cfg.shared_ffn, cfg.hidden, {.bias = false});
  }
  if (cfg.shared == SharedExpert::kGated)
    shared_gate_ = make_linear(builder, "shared_expert_gate", cfg.hidden, 1, {.bias = false});
}

Tensor SparseMlp::operator()(const Tensor& x) const {
  switch (config_.shared) {
    case SharedExpert::kNone: break;
    case SharedExpert::kGated: {
      const Tensor tokens = view(x, {-1, config_.hidden});
      Tensor passed = shared_(tokens);
      Tensor mixed = routed(x);
      {
        Tensor gate = shared_gate_(tokens);
        gate = activate(Activation::kSigmoid, gate);
        passed = mul(gate, passed);
      }
      mixed = add(view(mixed, tokens.shape()), passed);
      return view(mixed, x.shape());
    }
    case SharedExpert::kFused: {
      const Tensor mixed = routed(x);
      const Tensor passed = fused_(x);
      return add(mixed, passed);
    }
    case SharedExpert::kPlain: {
      const Tensor mixed = routed(x);
      const Tensor passed = shared_(x);
      return add(mixed, passed);
    }
  }
  return routed(x);
}

}  // namespace memfathom
