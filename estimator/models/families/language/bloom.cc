// BLOOM: a decoder with position biases on the scores instead of position embeddings.
#include <utility>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/decoder.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

struct BloomConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, vocabulary = 0;
  double dropout = 0, attention_dropout = 0;
  bool residual_after_norm = false;

  std::int64_t head_size() const { return hidden / heads; }
};

BloomConfig read_plan(const Node& config) {
  BloomConfig cfg;
  cfg.hidden = required_count(config, {"hidden_size", "n_embed"});
  cfg.layers = required_count(config, {"n_layer", "num_hidden_layers"}, kMaxLayers);
  cfg.heads = required_count(config, {"n_head", "num_attention_heads"});
  require_divides(config, {"n_head", "num_attention_heads"}, cfg.heads, cfg.hidden, "hidden_size");
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.dropout = probability_or(config, {"hidden_dropout"}, 0);
  cfg.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  cfg.residual_after_norm = flag_or(config, {"apply_residual_connection_post_layernorm"}, false);
  return cfg;
}

// tanh(0.798 x (1 + 0.0447 x x))
Tensor inner_tanh(const Tensor& x) {
  const Tensor scaled = mul_scalar(x, 0.79788456);
  Tensor polynomial = mul_scalar(x, 0.044715);
  polynomial = mul(polynomial, x);
  polynomial = add_scalar(polynomial, 1);
  polynomial = mul(scaled, polynomial);
  return activate(Activation::kTanh, polynomial);
}

Tensor bloom_gelu_gradient(const Tensor& x, const Tensor& gradient) {
  const Tensor tanh = inner_tanh(x);
  Tensor slope;
  {
    const Tensor half = mul_scalar(x, 0.5);
    Tensor left = mul(tanh, tanh);
    left = add_scalar(left, 1);
    Tensor right = mul_scalar(x, 0.1070322243);
    right = mul(right, x);
    right = add_scalar(right, 0.79788456);
    left = mul(left, right);
    slope = mul(half, left);
  }
  {
    Tensor rest = add_scalar(tanh, 1);
    rest = mul_scalar(rest, 0.5);
    slope = add(slope, rest);
  }
  return mul(slope, gradient);
}

// BLOOM's own autograd function: elementary operations in both directions, only the input is kept.
Tensor bloom_gelu(const Tensor& x) {
  Session& session = x.session();
  Recording tape(session, "GeLUFunction", {&x});
  tape.save(x);
  Tensor out;
  {
    const NoGrad no_grad(session);
    const Tensor half = mul_scalar(x, 0.5);
    Tensor factor = inner_tanh(x);
    factor = add_scalar(factor, 1);
    out = mul(half, factor);
  }
  tape.finish(out, [](Backward& b) { b.give(0, bloom_gelu_gradient(b.saved(0), b.gradient())); });
  return out;
}

class BloomBlock {
 public:
  BloomBlock(Builder& builder, const BloomConfig& cfg, std::size_t index)
      : config_(cfg), index_(index) {
    first_norm_ = make_norm(builder, "input_layernorm", NormKind::kLayer, cfg.hidden);
    {
      const PathScope scope(builder, "self_attention");
      qkv_ = make_linear(builder, "query_key_value", cfg.hidden, 3 * cfg.hidden);
      output_ = make_linear(builder, "dense", cfg.hidden, cfg.hidden);
    }
    second_norm_ = make_norm(builder, "post_attention_layernorm", NormKind::kLayer, cfg.hidden);
    const PathScope scope(builder, "mlp");
    first_ = make_linear(builder, "dense_h_to_4h", cfg.hidden, 4 * cfg.hidden);
    second_ = make_linear(builder, "dense_4h_to_h", 4 * cfg.hidden, cfg.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    Tensor normed = first_norm_(x);
    const Attended attended = attention(normed, config_.residual_after_norm ? normed : x, pass);
    normed = second_norm_(attended.output);
    Tensor output = feed_forward(normed, config_.residual_after_norm ? normed : attended.output);
    if (const auto last = pass.last_weights.lock()) *last = attended.weights;
    return output;
  }

 private:
  Attended attention(const Tensor& x, const Tensor& residual, const Pass& pass) const {
    const std::int64_t b = x.size(0);
    const std::int64_t s = x.size(1);
    const std::int64_t d = config_.head_size();
    const Tensor fused = view(qkv_(x), {b, s, config_.heads, 3, d});
    Tensor q = transpose(select(fused, 3, 0), 1, 2);
    Tensor k = transpose(select(fused, 3, 1), 1, 2);
    Tensor v = transpose(select(fused, 3, 2), 1, 2);
    if (pass.cache != nullptr) pass.cache->update(index_, k, v);
    const std::int64_t keys = k.size(2);
    q = reshape(q, {b * config_.heads, s, d});
    k = transpose(reshape(k, {b * config_.heads, keys, d}), 1, 2);
    v = reshape(v, {b * config_.heads, keys, d});
    // alibi.baddbmm(q, k): the biases are added inside the product.
    const Tensor scores = bmm(q, k);
    Tensor weights = view(scores, {b, config_.heads, s, keys});
    if (pass.mask) weights = add(weights, pass.mask);
    Tensor probabilities;
    {
      const Tensor wide = softmax_fp32(weights);
      probabilities = to_dtype(wide, q.dtype());
    }
    probabilities = dropout(probabilities, config_.attention_dropout);
    const Tensor flat = view(probabilities, {b * config_.heads, s, keys});
    Tensor context = bmm(flat, v);
    context = reshape(permute(view(context, {b, config_.heads, s, d}), {0, 2, 1, 3}),
                      {b, s, config_.hidden});
    Tensor output = output_(context);
    output = joined(output, residual);
    return {output, probabilities};
  }

  Tensor feed_forward(const Tensor& x, const Tensor& residual) const {
    Tensor hidden = first_(x);
    hidden = bloom_gelu(hidden);
    const Tensor output = second_(hidden);
    return joined(output, residual);
  }

  Tensor joined(const Tensor& x, const Tensor& residual) const {
    const Tensor dropped = dropout(x, config_.dropout);
    return add(residual, dropped);
  }

  BloomConfig config_;
  std::size_t index_;
  NormLayer first_norm_, second_norm_;
  Linear qkv_, output_, first_, second_;
};

DecoderOutline outline_of(const BloomConfig& cfg) {
  DecoderOutline outline;
  outline.layers = cfg.layers;
  outline.hidden = cfg.hidden;
  outline.vocabulary = cfg.vocabulary;
  outline.tied_by_default = true;
  outline.scope = "transformer";
  outline.embedding = "word_embeddings";
  outline.blocks = "h";
  outline.last_norm = "ln_f";
  return outline;
}

// The library has no other attention for it.
ModelSettings eager(ModelSettings settings) {
  settings.attention = AttentionImplementation::kEager;
  return settings;
}

class Bloom final : public Decoder<BloomBlock> {
 public:
  Bloom(Builder& builder, const Node& config, const ModelSettings& settings, BloomConfig cfg)
      : Decoder(builder, eager(settings), outline_of(cfg)), heads_(cfg.heads), hidden_(cfg.hidden) {
    cfg.dropout = dropout_or(cfg.dropout);
    cfg.attention_dropout = dropout_or(cfg.attention_dropout);
    build(builder, config, [&](std::size_t index) { return BloomBlock(builder, cfg, index); });
  }

 private:
  void make_beside_embedding(Builder& builder) override {
    embedding_norm_ = make_norm(builder, "word_embeddings_layernorm", NormKind::kLayer, hidden_);
  }

  Tensor embedded(const Tensor& words) override { return embedding_norm_(words); }

  // The biases: slopes of the heads times positions, a row for each sample and head.
  void complete(Pass& pass, const Tensor& embeddings) override {
    const std::int64_t queries = embeddings.size(1);
    const std::int64_t keys = pass.cache != nullptr ? pass.cache->key_length(queries, 0) : queries;
    pass.biases = session().empty({embeddings.size(0) * heads_, 1, keys}, embeddings.dtype());
  }

  std::int64_t heads_, hidden_;
  NormLayer embedding_norm_;
};

}  // namespace

std::unique_ptr<Network> make_bloom(Builder& builder, const Node& config,
                                    const ModelSettings& settings) {
  return std::make_unique<Bloom>(builder, config, settings, read_plan(config));
}

}  // namespace memfathom
