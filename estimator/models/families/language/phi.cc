// Phi (1, 1.5, 2): attention and MLP side by side on one layer norm, part of each head rotated.
#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/decoder.h"
#include "estimator/models/blocks/feed_forward.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct PhiConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_size = 0, ffn = 0,
               vocabulary = 0, rotary = 0;
  double residual_dropout = 0, embedding_dropout = 0, attention_dropout = 0;
  bool qk_norm = false;
  Activation activation = Activation::kGeluNew;
};

PhiConfig read_phi_config(const Node& config) {
  PhiConfig cfg;
  cfg.hidden = required_count(config, {"hidden_size"});
  cfg.layers = required_count(config, {"num_hidden_layers"}, kMaxLayers);
  cfg.heads = required_count(config, {"num_attention_heads"});
  require_divides(config, {"num_attention_heads"}, cfg.heads, cfg.hidden, "hidden_size");
  cfg.kv_heads = count_or(config, {"num_key_value_heads"}, cfg.heads);
  require_divides(config, {"num_key_value_heads"}, cfg.kv_heads, cfg.heads, "num_attention_heads");
  cfg.head_size = cfg.hidden / cfg.heads;
  cfg.ffn = required_count(config, {"intermediate_size"});
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.rotary = rotary_size(config, cfg.head_size, 0.5);
  cfg.residual_dropout = probability_or(config, {"resid_pdrop"}, 0);
  cfg.embedding_dropout = probability_or(config, {"embd_pdrop"}, 0);
  cfg.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  cfg.qk_norm = flag_or(config, {"qk_layernorm"}, false);
  cfg.activation = activation_or(config, {"hidden_act"}, "gelu_new");
  return cfg;
}

class PhiBlock {
 public:
  PhiBlock(Builder& builder, const PhiConfig& cfg, const AttentionStyle& style, std::size_t index)
      : config_(cfg), style_(style), index_(index) {
    {
      const PathScope scope(builder, "self_attn");
      const std::int64_t kv_width = cfg.kv_heads * cfg.head_size;
      q_ = make_linear(builder, "q_proj", cfg.hidden, cfg.hidden);
      k_ = make_linear(builder, "k_proj", cfg.hidden, kv_width);
      v_ = make_linear(builder, "v_proj", cfg.hidden, kv_width);
      output_ = make_linear(builder, "dense", cfg.hidden, cfg.hidden);
      if (cfg.qk_norm) {
        q_norm_ = make_norm(builder, "q_layernorm", NormKind::kLayer, cfg.head_size);
        k_norm_ = make_norm(builder, "k_layernorm", NormKind::kLayer, cfg.head_size);
      }
    }
    {
      const PathScope scope(builder, "mlp");
      mlp_.activation = cfg.activation;
      mlp_.first = make_linear(builder, "fc1", cfg.hidden, cfg.ffn);
      mlp_.second = make_linear(builder, "fc2", cfg.ffn, cfg.hidden);
    }
    norm_ = make_norm(builder, "input_layernorm", NormKind::kLayer, cfg.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    const Tensor hidden = norm_(x);
    Attended attended = attention(hidden, pass);
    attended.output = dropout(attended.output, config_.residual_dropout);
    Tensor fed = mlp_(hidden);
    fed = dropout(fed, config_.residual_dropout);
    const Tensor both = add(attended.output, fed);
    return add(both, x);
  }

 private:
  Attended attention(const Tensor& x, const Pass& pass) const {
    Tensor q = split_heads(q_(x), config_.head_size);
    Tensor k = split_heads(k_(x), config_.head_size);
    Tensor v = split_heads(v_(x), config_.head_size);
    if (config_.qk_norm) {
      q = q_norm_(q);
      k = k_norm_(k);
    }
    const NamedParts named = rotate_named_parts(q, k, pass.rotary);
    if (pass.cache != nullptr) pass.cache->update(index_, k, v);
    Attended attended = attend(style_, q, k, v, pass.mask);
    attended.output = merge_heads(attended.output);
    attended.output = output_(attended.output);
    return attended;
  }

  PhiConfig config_;
  AttentionStyle style_;
  std::size_t index_;
  Linear q_, k_, v_, output_;
  NormLayer q_norm_, k_norm_, norm_;
  PlainMlp mlp_;
};

DecoderOutline outline_of(const PhiConfig& cfg) {
  DecoderOutline outline;
  outline.layers = cfg.layers;
  outline.hidden = cfg.hidden;
  outline.vocabulary = cfg.vocabulary;
  outline.rotary = cfg.rotary;
  outline.embedding_dropout = cfg.embedding_dropout;
  outline.head_bias = true;
  outline.last_norm = "final_layernorm";
  return outline;
}

class Phi final : public Decoder<PhiBlock> {
 public:
  Phi(Builder& builder, const Node& config, const ModelSettings& settings, PhiConfig cfg)
      : Decoder(builder, settings, outline_of(cfg)) {
    cfg.residual_dropout = dropout_or(cfg.residual_dropout);
    const AttentionStyle style = attention_style(cfg.attention_dropout, cfg.head_size);
    build(builder, config, [&](std::size_t index) { return PhiBlock(builder, cfg, style, index); });
  }

 private:
  bool widened_logits() const override { return true; }
};

}  // namespace

std::unique_ptr<Network> make_phi(Builder& builder, const Node& config,
                                  const ModelSettings& settings) {
  return std::make_unique<Phi>(builder, config, settings, read_phi_config(config));
}

}  // namespace memfathom
