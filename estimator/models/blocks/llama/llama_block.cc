#include "estimator/models/blocks/llama/llama_block.h"

#include <utility>
#include <vector>

#include "estimator/models/blocks/sequence_shards.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"

namespace memfathom {
namespace {

std::variant<LlamaAttention, LatentAttention> make_attention(Builder& builder,
                                                             const LlamaConfig& cfg,
                                                             const LlamaLayer& layer,
                                                             const AttentionStyle& style) {
  if (cfg.latent.kv_rank > 0) return LatentAttention(builder, cfg, style);
  return LlamaAttention(builder, cfg, layer, style);
}

}  // namespace

LlamaBlock::LlamaBlock(Builder& builder, const LlamaConfig& cfg, const LlamaLayer& layer,
                       const AttentionStyle& style, std::size_t index)
    : config_(cfg), index_(index), attention_(make_attention(builder, cfg, layer, style)) {
  make_mlp(builder, layer.sparse);
  if (cfg.placement != NormPlacement::kAfter)
    input_norm_ = make_norm(builder, "input_layernorm", cfg.norm, cfg.hidden);
  if (cfg.parallel) return;
  attention_norm_ = make_norm(builder, "post_attention_layernorm", cfg.norm, cfg.hidden);
  if (cfg.placement == NormPlacement::kBoth) {
    mlp_norm_ = make_norm(builder, "pre_feedforward_layernorm", cfg.norm, cfg.hidden);
  }
  if (cfg.placement != NormPlacement::kBefore) {
    output_norm_ = make_norm(builder, "post_feedforward_layernorm", cfg.norm, cfg.hidden);
  }
}

Tensor LlamaBlock::operator()(const Tensor& x, const Pass& pass) const {
  Tensor weights;  // Python's `_` keeps eager's weights to the end
  Tensor hidden = config_.placement == NormPlacement::kAfter ? x : input_norm_(x);
  Attended attended = std::visit(
      [&](const auto& attention) { return attention(hidden, pass, index_); }, attention_);
  weights = std::move(attended.weights);
  if (config_.parallel) {
    const Tensor fed = dropout(mlp(hidden), config_.mlp_dropout);
    const Tensor first = add(x, attended.output);
    return add(first, fed);
  }
  std::vector<Tensor> kept;
  if (config_.keeps_attention_locals) kept = {hidden, attended.output};
  hidden = std::move(attended.output);
  if (config_.placement != NormPlacement::kBefore) hidden = attention_norm_(hidden);
  hidden = joined(x, hidden);
  const Tensor residual = hidden;
  if (config_.placement == NormPlacement::kBefore) hidden = attention_norm_(hidden);
  if (config_.placement == NormPlacement::kBoth) hidden = mlp_norm_(hidden);
  hidden = mlp(hidden);
  hidden = dropout(hidden, config_.mlp_dropout);
  if (config_.placement != NormPlacement::kBefore) hidden = output_norm_(hidden);
  return joined(residual, hidden);
}

void LlamaBlock::make_mlp(Builder& builder, bool sparse) {
  if (sparse) {
    ExpertsConfig experts = config_.experts;
    experts.hidden = config_.hidden;
    experts.activation = config_.activation;
    sparse_mlp_.emplace(builder, experts, config_.grouped_experts);
    return;
  }
  const PathScope scope(builder, config_.names.mlp);
  const LinearOptions biased{.bias = config_.mlp_bias};
  const auto in = [&](const char* name, std::int64_t width) {
    return make_linear(builder, name, config_.hidden, width, biased);
  };
  const auto out = [&](const char* name) {
    return make_linear(builder, name, config_.ffn, config_.hidden, biased);
  };
  switch (config_.mlp) {
    case MlpForm::kPlain:
      plain_mlp_.activation = config_.activation;
      plain_mlp_.first = in(config_.names.up, config_.ffn);
      plain_mlp_.second = out(config_.names.down);
      return;
    case MlpForm::kFusedGated:
      fused_mlp_.activation = config_.activation;
      fused_mlp_.shards = config_.shards;
      fused_mlp_.gate_up = in("gate_up_proj", 2 * config_.ffn);
      fused_mlp_.down = out(config_.names.down);
      return;
    case MlpForm::kGated: break;
  }
  gated_mlp_.activation = config_.activation;
  gated_mlp_.shards = config_.shards;
  gated_mlp_.gate = in(config_.names.gate, config_.ffn);
  gated_mlp_.up = in(config_.names.up, config_.ffn);
  gated_mlp_.down = out(config_.names.down);
}

Tensor LlamaBlock::mlp(const Tensor& x) const {
  if (sparse_mlp_)
    return scatter_positions((*sparse_mlp_)(gather_positions(x, config_.shards)), config_.shards);
  switch (config_.mlp) {
    case MlpForm::kPlain:
      return scatter_positions(plain_mlp_(gather_positions(x, config_.shards)), config_.shards);
    case MlpForm::kFusedGated: return fused_mlp_(x);
    case MlpForm::kGated: break;
  }
  return gated_mlp_(x);
}

Tensor LlamaBlock::joined(const Tensor& residual, const Tensor& x) const {
  if (config_.residual_multiplier) {
    const Tensor scaled = mul_scalar(x, *config_.residual_multiplier);
    return add(residual, scaled);
  }
  const Tensor dropped = dropout(x, config_.residual_dropout);
  return add(residual, dropped);
}

}  // namespace memfathom
