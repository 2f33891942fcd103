#include "estimator/models/blocks/llama/llama_block.h"

#include <utility>
#include <vector>

#include "estimator/models/blocks/sequence_shards.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"

namespace memfathom {
namespace {

std::variant<LlamaAttention, LatentAttention> make_attention(Builder& builder,
                                                             const LlamaPlan& plan,
                                                             const LlamaLayer& layer,
                                                             const AttentionStyle& style) {
  if (plan.latent.kv_rank > 0) return LatentAttention(builder, plan, style);
  return LlamaAttention(builder, plan, layer, style);
}

}  // namespace

LlamaBlock::LlamaBlock(Builder& builder, const LlamaPlan& plan, const LlamaLayer& layer,
                       const AttentionStyle& style, std::size_t index)
    : plan_(plan), index_(index), attention_(make_attention(builder, plan, layer, style)) {
  make_mlp(builder, layer.sparse);
  if (plan.placement != NormPlacement::kAfter)
    input_norm_ = make_norm(builder, "input_layernorm", plan.norm, plan.hidden);
  if (plan.parallel) return;
  attention_norm_ = make_norm(builder, "post_attention_layernorm", plan.norm, plan.hidden);
  if (plan.placement == NormPlacement::kBoth) {
    mlp_norm_ = make_norm(builder, "pre_feedforward_layernorm", plan.norm, plan.hidden);
  }
  if (plan.placement != NormPlacement::kBefore) {
    output_norm_ = make_norm(builder, "post_feedforward_layernorm", plan.norm, plan.hidden);
  }
}

Tensor LlamaBlock::operator()(const Tensor& x, const Pass& pass) const {
  Tensor weights;  // Python's `_` keeps eager's weights to the end
  Tensor hidden = plan_.placement == NormPlacement::kAfter ? x : input_norm_(x);
  Attended attended = std::visit(
      [&](const auto& attention) { return attention(hidden, pass, index_); }, attention_);
  weights = std::move(attended.weights);
  if (plan_.parallel) {
    const Tensor fed = dropout(mlp(hidden), plan_.mlp_dropout);
    const Tensor first = add(x, attended.output);
    return add(first, fed);
  }
  std::vector<Tensor> kept;
  if (plan_.keeps_first_half) kept = {hidden, attended.output};
  hidden = std::move(attended.output);
  if (plan_.placement != NormPlacement::kBefore) hidden = attention_norm_(hidden);
  hidden = joined(x, hidden);
  const Tensor residual = hidden;
  if (plan_.placement == NormPlacement::kBefore) hidden = attention_norm_(hidden);
  if (plan_.placement == NormPlacement::kBoth) hidden = mlp_norm_(hidden);
  hidden = mlp(hidden);
  hidden = dropout(hidden, plan_.mlp_dropout);
  if (plan_.placement != NormPlacement::kBefore) hidden = output_norm_(hidden);
  return joined(residual, hidden);
}

void LlamaBlock::make_mlp(Builder& builder, bool sparse) {
  if (sparse) {
    ExpertsPlan experts = plan_.experts;
    experts.hidden = plan_.hidden;
    experts.activation = plan_.activation;
    sparse_mlp_.emplace(builder, experts, plan_.grouped_experts);
    return;
  }
  const PathScope scope(builder, plan_.names.mlp);
  const LinearOptions biased{.bias = plan_.mlp_bias};
  const auto in = [&](const char* name, std::int64_t width) {
    return make_linear(builder, name, plan_.hidden, width, biased);
  };
  const auto out = [&](const char* name) {
    return make_linear(builder, name, plan_.ffn, plan_.hidden, biased);
  };
  switch (plan_.mlp) {
    case MlpForm::kPlain:
      plain_mlp_.activation = plan_.activation;
      plain_mlp_.first = in(plan_.names.up, plan_.ffn);
      plain_mlp_.second = out(plan_.names.down);
      return;
    case MlpForm::kFusedGated:
      fused_mlp_.activation = plan_.activation;
      fused_mlp_.shards = plan_.shards;
      fused_mlp_.gate_up = in("gate_up_proj", 2 * plan_.ffn);
      fused_mlp_.down = out(plan_.names.down);
      return;
    case MlpForm::kGated: break;
  }
  gated_mlp_.activation = plan_.activation;
  gated_mlp_.shards = plan_.shards;
  gated_mlp_.gate = in(plan_.names.gate, plan_.ffn);
  gated_mlp_.up = in(plan_.names.up, plan_.ffn);
  gated_mlp_.down = out(plan_.names.down);
}

Tensor LlamaBlock::mlp(const Tensor& x) const {
  if (sparse_mlp_)
    return scatter_positions((*sparse_mlp_)(gather_positions(x, plan_.shards)), plan_.shards);
  switch (plan_.mlp) {
    case MlpForm::kPlain:
      return scatter_positions(plain_mlp_(gather_positions(x, plan_.shards)), plan_.shards);
    case MlpForm::kFusedGated: return fused_mlp_(x);
    case MlpForm::kGated: break;
  }
  return gated_mlp_(x);
}

Tensor LlamaBlock::joined(const Tensor& residual, const Tensor& x) const {
  if (plan_.residual_multiplier != 1) {
    const Tensor scaled = mul_scalar(x, plan_.residual_multiplier);
    return add(residual, scaled);
  }
  const Tensor dropped = dropout(x, plan_.residual_dropout);
  return add(residual, dropped);
}

}  // namespace memfathom
