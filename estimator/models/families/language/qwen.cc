// Qwen (the first): fused qkv with a bias, an MLP of half the stated width, rotation in fp32.
#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/decoder.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct QwenConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, head_size = 0, ffn = 0, vocabulary = 0;
  double attention_dropout = 0, embedding_dropout = 0;
  bool bias = false;
};

QwenConfig read_plan(const Node& config) {
  QwenConfig cfg;
  cfg.hidden = required_count(config, {"hidden_size", "n_embd"});
  cfg.layers = required_count(config, {"num_hidden_layers", "n_layer"}, kMaxLayers);
  cfg.heads = required_count(config, {"num_attention_heads", "n_head"});
  cfg.head_size = count_or(config, {"kv_channels"}, 128);
  // Two matrices share the stated width.
  cfg.ffn = required_count(config, {"intermediate_size", "ffn_hidden_size"}, 2 * kMaxWidth) / 2;
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.attention_dropout = probability_or(config, {"attn_dropout_prob", "attn_pdrop"}, 0);
  cfg.embedding_dropout = probability_or(config, {"emb_dropout_prob", "embd_pdrop"}, 0);
  cfg.bias = !flag_or(config, {"no_bias"}, true);
  return cfg;
}

class QwenBlock {
 public:
  QwenBlock(Builder& builder, const QwenConfig& cfg, const AttentionStyle& style, std::size_t index)
      : config_(cfg), style_(style), index_(index) {
    const std::int64_t inner = cfg.heads * cfg.head_size;
    first_norm_ = make_norm(builder, "ln_1", NormKind::kRms, cfg.hidden);
    {
      const PathScope scope(builder, "attn");
      qkv_ = make_linear(builder, "c_attn", cfg.hidden, 3 * inner);
      output_ = make_linear(builder, "c_proj", inner, cfg.hidden, {.bias = cfg.bias});
    }
    second_norm_ = make_norm(builder, "ln_2", NormKind::kRms, cfg.hidden);
    const PathScope scope(builder, "mlp");
    linear_part_ = make_linear(builder, "w1", cfg.hidden, cfg.ffn, {.bias = cfg.bias});
    gate_ = make_linear(builder, "w2", cfg.hidden, cfg.ffn, {.bias = cfg.bias});
    down_ = make_linear(builder, "c_proj", cfg.ffn, cfg.hidden, {.bias = cfg.bias});
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    Tensor normed = first_norm_(x);
    const Attended attended = attention(normed, pass);
    const Tensor input = add(attended.output, x);
    normed = second_norm_(input);
    const Tensor fed = feed_forward(normed);
    return add(input, fed);
  }

 private:
  Attended attention(const Tensor& x, const Pass& pass) const {
    const std::int64_t inner = config_.heads * config_.head_size;
    const std::int64_t sizes[] = {inner, inner, inner};
    std::vector<Tensor> parts = split(qkv_(x), sizes, 2);
    Tensor q = split_heads(parts[0], config_.head_size);
    Tensor k = split_heads(parts[1], config_.head_size);
    Tensor v = split_heads(parts[2], config_.head_size);
    parts.clear();
    q = turned(q, pass.rotary);
    k = turned(k, pass.rotary);
    if (pass.cache != nullptr) pass.cache->update(index_, k, v);
    Attended attended = attend(style_, q, k, v, pass.mask);
    attended.output = merge_heads(attended.output);
    attended.output = output_(attended.output);
    return attended;
  }

  // Rotation in fp32, and back.
  static Tensor turned(const Tensor& x, const RotaryTables& tables) {
    const Tensor wide = to_dtype(x, DType::kFp32);
    const Tensor rotated = rotate(wide, tables);
    return to_dtype(rotated, x.dtype());
  }

  Tensor feed_forward(const Tensor& x) const {
    const Tensor wide = linear_part_(x);
    const Tensor gate = gate_(x);
    Tensor product;
    {
      const Tensor active = activate(Activation::kSilu, gate);
      product = mul(wide, active);
    }
    return down_(product);
  }

  QwenConfig config_;
  AttentionStyle style_;
  std::size_t index_;
  NormLayer first_norm_, second_norm_;
  Linear qkv_, output_, linear_part_, gate_, down_;
};

DecoderOutline outline_of(const QwenConfig& cfg) {
  DecoderOutline outline;
  outline.layers = cfg.layers;
  outline.hidden = cfg.hidden;
  outline.vocabulary = cfg.vocabulary;
  outline.rotary = cfg.head_size;
  outline.rotary_type = DType::kFp32;
  outline.embedding_dropout = cfg.embedding_dropout;
  outline.norm = NormKind::kRms;
  outline.scope = "transformer";
  outline.embedding = "wte";
  outline.blocks = "h";
  outline.last_norm = "ln_f";
  return outline;
}

class Qwen final : public Decoder<QwenBlock> {
 public:
  Qwen(Builder& builder, const Node& config, const ModelSettings& settings, const QwenConfig& cfg)
      : Decoder(builder, settings, outline_of(cfg)) {
    const AttentionStyle style = attention_style(cfg.attention_dropout, cfg.head_size);
    build(builder, config,
          [&](std::size_t index) { return QwenBlock(builder, cfg, style, index); });
  }
};

}  // namespace

std::unique_ptr<Network> make_qwen(Builder& builder, const Node& config,
                                   const ModelSettings& settings) {
  return std::make_unique<Qwen>(builder, config, settings, read_plan(config));
}

}  // namespace memfathom
