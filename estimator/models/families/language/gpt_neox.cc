// GPT-NeoX and Pythia: fused qkv per head, part of it rotated, attention and MLP side by side.
#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/decoder.h"
#include "estimator/models/blocks/feed_forward.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct NeoxConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, ffn = 0, vocabulary = 0, rotary = 0;
  double dropout = 0, attention_dropout = 0;
  bool bias = true, parallel = true;
  Activation activation = Activation::kGelu;

  std::int64_t head_size() const { return hidden / heads; }
};

NeoxConfig read_plan(const Node& config) {
  NeoxConfig cfg;
  cfg.hidden = required_count(config, {"hidden_size"});
  cfg.layers = required_count(config, {"num_hidden_layers"}, kMaxLayers);
  cfg.heads = required_count(config, {"num_attention_heads"});
  require_divides(config, {"num_attention_heads"}, cfg.heads, cfg.hidden, "hidden_size");
  cfg.ffn = required_count(config, {"intermediate_size"});
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.rotary = rotary_size(config, cfg.head_size(), 0.25);
  cfg.dropout = probability_or(config, {"hidden_dropout"}, 0);
  cfg.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  cfg.bias = flag_or(config, {"attention_bias"}, true);
  cfg.parallel = flag_or(config, {"use_parallel_residual"}, true);
  cfg.activation = activation_or(config, {"hidden_act"}, "gelu");
  return cfg;
}

class NeoxBlock {
 public:
  NeoxBlock(Builder& builder, const NeoxConfig& cfg, const AttentionStyle& style, std::size_t index)
      : config_(cfg), style_(style), index_(index) {
    input_norm_ = make_norm(builder, "input_layernorm", NormKind::kLayer, cfg.hidden);
    mlp_norm_ = make_norm(builder, "post_attention_layernorm", NormKind::kLayer, cfg.hidden);
    {
      const PathScope scope(builder, "attention");
      qkv_ =
          make_linear(builder, "query_key_value", cfg.hidden, 3 * cfg.hidden, {.bias = cfg.bias});
      output_ = make_linear(builder, "dense", cfg.hidden, cfg.hidden, {.bias = cfg.bias});
    }
    const PathScope scope(builder, "mlp");
    mlp_.activation = cfg.activation;
    mlp_.first = make_linear(builder, "dense_h_to_4h", cfg.hidden, cfg.ffn);
    mlp_.second = make_linear(builder, "dense_4h_to_h", cfg.ffn, cfg.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    Attended attended;
    {
      const Tensor normed = input_norm_(x);
      attended = attention(normed, pass);
    }
    attended.output = dropout(attended.output, config_.dropout);
    if (!config_.parallel) attended.output = add(attended.output, x);
    Tensor fed;
    {
      const Tensor normed = mlp_norm_(config_.parallel ? x : attended.output);
      fed = mlp_(normed);
    }
    fed = dropout(fed, config_.dropout);
    if (!config_.parallel) return add(fed, attended.output);
    const Tensor both = add(fed, attended.output);
    return add(both, x);
  }

 private:
  Attended attention(const Tensor& x, const Pass& pass) const {
    const Tensor qkv = split_heads(qkv_(x), 3 * config_.head_size());
    std::vector<Tensor> parts = chunk(qkv, 3, -1);
    Tensor q = std::move(parts[0]);
    Tensor k = std::move(parts[1]);
    Tensor v = std::move(parts[2]);
    {
      Tensor rotated = rotate_and_join(q, pass.rotary);
      k = rotate_and_join(k, pass.rotary);
      q = std::move(rotated);
    }
    if (pass.cache != nullptr) pass.cache->update(index_, k, v);
    Attended attended = attend(style_, q, k, v, pass.mask);
    attended.output = merge_heads(attended.output);
    attended.output = output_(attended.output);
    return attended;
  }

  NeoxConfig config_;
  AttentionStyle style_;
  std::size_t index_;
  NormLayer input_norm_, mlp_norm_;
  Linear qkv_, output_;
  PlainMlp mlp_;
};

DecoderOutline outline_of(const NeoxConfig& cfg) {
  DecoderOutline outline;
  outline.layers = cfg.layers;
  outline.hidden = cfg.hidden;
  outline.vocabulary = cfg.vocabulary;
  outline.rotary = cfg.rotary;
  outline.embedding_dropout = cfg.dropout;
  outline.scope = "gpt_neox";
  outline.embedding = "embed_in";
  outline.last_norm = "final_layer_norm";
  return outline;
}

class GptNeox final : public Decoder<NeoxBlock> {
 public:
  GptNeox(Builder& builder, const Node& config, const ModelSettings& settings, NeoxConfig cfg)
      : Decoder(builder, settings, outline_of(cfg)) {
    cfg.dropout = dropout_or(cfg.dropout);
    const AttentionStyle style = attention_style(cfg.attention_dropout, cfg.head_size());
    build(builder, config,
          [&](std::size_t index) { return NeoxBlock(builder, cfg, style, index); });
  }
};

}  // namespace

std::unique_ptr<Network> make_gpt_neox(Builder& builder, const Node& config,
                                       const ModelSettings& settings) {
  return std::make_unique<GptNeox>(builder, config, settings, read_plan(config));
}

}  // namespace memfathom
