// Falcon: one key-value head for all queries, or groups of them, beside a plain MLP.
#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/decoder.h"
#include "estimator/models/blocks/feed_forward.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct FalconConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, ffn = 0, vocabulary = 0;
  double dropout = 0, attention_dropout = 0;
  bool bias = false, parallel = true, multi_query = true, grouped = false, alibi = false,
       two_norms = false;
  Activation activation = Activation::kGelu;

  std::int64_t head_size() const { return hidden / heads; }
  bool one_key_head() const { return multi_query && !grouped && heads > 1; }
  std::int64_t qkv_width() const {
    if (grouped) return (heads + 2 * kv_heads) * head_size();
    return multi_query ? hidden + 2 * head_size() : 3 * hidden;
  }
};

FalconConfig read_plan(const Node& config) {
  FalconConfig cfg;
  cfg.hidden = required_count(config, {"hidden_size"});
  cfg.layers = required_count(config, {"num_hidden_layers"}, kMaxLayers);
  cfg.heads = required_count(config, {"num_attention_heads"});
  require_divides(config, {"num_attention_heads"}, cfg.heads, cfg.hidden, "hidden_size");
  cfg.kv_heads = count_or(config, {"num_kv_heads", "n_head_kv"}, cfg.heads);
  require_divides(config, {"num_kv_heads", "n_head_kv"}, cfg.kv_heads, cfg.heads,
                  "num_attention_heads");
  cfg.ffn = count_or(config, {"ffn_hidden_size"}, 4 * cfg.hidden, 4 * kMaxWidth);
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.dropout = probability_or(config, {"hidden_dropout"}, 0);
  cfg.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  cfg.bias = flag_or(config, {"bias"}, false);
  cfg.parallel = flag_or(config, {"parallel_attn"}, true);
  cfg.multi_query = flag_or(config, {"multi_query"}, true);
  cfg.grouped = flag_or(config, {"new_decoder_architecture"}, false);
  cfg.alibi = flag_or(config, {"alibi"}, false);
  cfg.two_norms =
      cfg.parallel && cfg.grouped && count_or(config, {"num_ln_in_parallel_attn"}, 2, 2) == 2;
  cfg.activation = activation_or(config, {"activation"}, "gelu");
  return cfg;
}

// x[..., [i], :] along `dim`: a copy of one slice, as indexing with a list makes.
Tensor picked(const Tensor& x, int dim, std::int64_t index) {
  return clone(slice(x, dim, index, index + 1));
}

class FalconBlock {
 public:
  FalconBlock(Builder& builder, const FalconConfig& cfg, const AttentionStyle& style,
              std::size_t index)
      : config_(cfg), style_(style), index_(index) {
    {
      const PathScope scope(builder, "self_attention");
      qkv_ = make_linear(builder, "query_key_value", cfg.hidden, cfg.qkv_width(),
                         {.bias = cfg.bias, .unfused = true});
      output_ = make_linear(builder, "dense", cfg.hidden, cfg.hidden,
                            {.bias = cfg.bias, .unfused = true});
    }
    {
      const PathScope scope(builder, "mlp");
      mlp_.activation = cfg.activation;
      mlp_.first = make_linear(builder, "dense_h_to_4h", cfg.hidden, cfg.ffn,
                               {.bias = cfg.bias, .unfused = true});
      mlp_.second = make_linear(builder, "dense_4h_to_h", cfg.ffn, cfg.hidden,
                                {.bias = cfg.bias, .unfused = true});
    }
    if (!cfg.parallel)
      second_norm_ = make_norm(builder, "post_attention_layernorm", NormKind::kLayer, cfg.hidden);
    first_norm_ = make_norm(builder, cfg.two_norms ? "ln_attn" : "input_layernorm",
                            NormKind::kLayer, cfg.hidden);
    if (cfg.two_norms) second_norm_ = make_norm(builder, "ln_mlp", NormKind::kLayer, cfg.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    const Tensor normed = first_norm_(x);
    Tensor mlp_input = config_.two_norms ? second_norm_(x) : normed;
    const Attended attended = attention(normed, pass);
    Tensor residual = x;
    if (!config_.parallel && !config_.grouped) {
      const Tensor dropped = dropout(attended.output, config_.attention_dropout);
      residual = add(residual, dropped);
      mlp_input = second_norm_(residual);
    }
    Tensor fed = mlp_(mlp_input);
    if (config_.parallel || config_.grouped) add_in_place(fed, attended.output);
    const Tensor dropped = dropout(fed, config_.dropout);
    Tensor output = add(residual, dropped);
    if (const auto last = pass.last_weights.lock()) *last = attended.weights;
    return output;
  }

 private:
  // [b, s, heads, d] of queries, keys and values.
  void split(const Tensor& fused, Tensor& q, Tensor& k, Tensor& v) const {
    const std::int64_t b = fused.size(0);
    const std::int64_t s = fused.size(1);
    const std::int64_t d = config_.head_size();
    if (config_.grouped) {
      const std::int64_t group = config_.heads / config_.kv_heads;
      const Tensor qkv = view(fused, {b, s, config_.kv_heads, group + 2, d});
      const Shape wide{b, s, config_.kv_heads, group, d};
      const Tensor q_part = slice(qkv, 3, 0, group);
      const Tensor k_part = expand(picked(qkv, 3, group), wide);
      const Tensor v_part = expand(picked(qkv, 3, group + 1), wide);
      const Shape flat{b, s, config_.heads, d};
      q = reshape(q_part, flat);
      k = reshape(k_part, flat);
      v = reshape(v_part, flat);
      return;
    }
    if (config_.multi_query) {
      const Tensor qkv = view(fused, {b, s, config_.heads + 2, d});
      q = slice(qkv, 2, 0, config_.heads);
      k = picked(qkv, 2, config_.heads);
      v = picked(qkv, 2, config_.heads + 1);
      return;
    }
    const Tensor qkv = view(fused, {b, s, config_.heads, 3, d});
    q = select(qkv, 3, 0);
    k = select(qkv, 3, 1);
    v = select(qkv, 3, 2);
  }

  Attended attention(const Tensor& x, const Pass& pass) const {
    const Tensor fused = qkv_(x);
    Tensor q;
    Tensor k;
    Tensor v;
    split(fused, q, k, v);
    q = transpose(q, 1, 2);
    k = transpose(k, 1, 2);
    v = transpose(v, 1, 2);
    if (!config_.alibi) {
      Tensor rotated = rotate(q, pass.rotary);
      k = rotate(k, pass.rotary);
      q = std::move(rotated);
    }
    if (pass.cache != nullptr) pass.cache->update(index_, k, v);
    Attended attended = style_.implementation == AttentionImplementation::kEager
                            ? attend_eagerly(q, k, v, pass, x.dtype())
                            : attend_by_kernel(q, k, v, pass.mask);
    attended.output = merge_heads(attended.output);
    attended.output = output_(attended.output);
    return attended;
  }

  // The model calls PyTorch's function itself, without enable_gqa: a single head of keys stays
  // one, which no fused kernel takes.
  Attended attend_by_kernel(const Tensor& q, const Tensor& k, const Tensor& v,
                            const Tensor& mask) const {
    if (!config_.one_key_head()) return attend(style_, q, k, v, mask);
    AttentionOptions options;
    options.implementation = style_.implementation;
    options.enable_gqa = false;
    options.scale = style_.scale;
    options.mask = mask;
    return {transpose(scaled_dot_product_attention(q, k, v, options), 1, 2), {}};
  }

  // The model's own code: scores are scaled in place and live until the weights exist; with biases
  // every step on the way has a name, and lives until the attention is done.
  Attended attend_eagerly(const Tensor& q, const Tensor& k, const Tensor& v, const Pass& pass,
                          DType hidden) const {
    const std::int64_t groups = q.size(1) / k.size(1);
    std::vector<Tensor> steps;
    {
      const Tensor keys = repeat_interleave_heads(k, groups);
      steps.push_back(matmul(q, transpose(keys, 2, 3)));
    }
    if (config_.alibi) {
      steps.push_back(to_dtype(steps.back(), DType::kFp32));
      steps.push_back(add(steps.back(), pass.biases));
    }
    mul_scalar_in_place(steps.back(), style_.scale);
    Tensor weights;
    {
      const Tensor sum = add(steps.back(), pass.mask);
      weights = hidden == DType::kFp32 ? softmax_fp32(sum) : softmax(to_dtype(sum, hidden));
    }
    if (!config_.alibi) steps.clear();
    weights = dropout(weights, style_.dropout);
    Tensor output = matmul(weights, repeat_interleave_heads(v, groups));
    output = contiguous(transpose(output, 1, 2));
    return {output, weights};
  }

  FalconConfig config_;
  AttentionStyle style_;
  std::size_t index_;
  Linear qkv_, output_;
  NormLayer first_norm_, second_norm_;
  PlainMlp mlp_;
};

DecoderOutline outline_of(const FalconConfig& cfg) {
  DecoderOutline outline;
  outline.layers = cfg.layers;
  outline.hidden = cfg.hidden;
  outline.vocabulary = cfg.vocabulary;
  outline.rotary = cfg.head_size();
  outline.tied_by_default = true;
  outline.scope = "transformer";
  outline.embedding = "word_embeddings";
  outline.blocks = "h";
  outline.last_norm = "ln_f";
  return outline;
}

class Falcon final : public Decoder<FalconBlock> {
 public:
  Falcon(Builder& builder, const Node& config, const ModelSettings& settings, FalconConfig cfg)
      : Decoder(builder, settings, outline_of(cfg)), heads_(cfg.heads), alibi_(cfg.alibi) {
    cfg.dropout = dropout_or(cfg.dropout);
    AttentionStyle style = attention_style(cfg.alibi ? cfg.attention_dropout : 0, cfg.head_size());
    style.softmax_in_fp32 = false;
    build(builder, config,
          [&](std::size_t index) { return FalconBlock(builder, cfg, style, index); });
  }

 private:
  bool always_masks() const override { return true; }

  void complete(Pass& pass, const Tensor& embeddings) override {
    if (!alibi_) return;
    // Slopes times positions, one row per head, joined with the causal mask.
    const std::int64_t queries = embeddings.size(1);
    const std::int64_t keys = pass.cache != nullptr ? pass.cache->length() + queries : queries;
    pass.biases = session().empty({embeddings.size(0), heads_, 1, keys}, embeddings.dtype());
    pass.mask = session().empty({embeddings.size(0), heads_, queries, keys}, embeddings.dtype());
  }

  std::int64_t heads_;
  bool alibi_;
};

}  // namespace

std::unique_ptr<Network> make_falcon(Builder& builder, const Node& config,
                                     const ModelSettings& settings) {
  return std::make_unique<Falcon>(builder, config, settings, read_plan(config));
}

}  // namespace memfathom
