// MPT: position biases on the scores, layer norms and matrices without bias.
#include <cmath>
#include <utility>
#include <vector>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/decoder.h"
#include "estimator/models/blocks/feed_forward.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

struct MptConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, vocabulary = 0, positions = 0;
  double dropout = 0;
  double scale = 1;

  std::int64_t head_size() const { return hidden / heads; }
};

MptConfig read_plan(const Node& config) {
  MptConfig cfg;
  cfg.hidden = required_count(config, {"d_model", "hidden_size"});
  cfg.layers = required_count(config, {"n_layers", "num_hidden_layers"}, kMaxLayers);
  cfg.heads = required_count(config, {"n_heads", "num_attention_heads"});
  require_divides(config, {"n_heads", "num_attention_heads"}, cfg.heads, cfg.hidden, "d_model");
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.positions = count_or(config, {"max_seq_len"}, 2048, kMaxTokens);
  cfg.scale = 1 / std::sqrt(static_cast<double>(cfg.head_size()));
  const Node* attention = find_any(config, {"attn_config"});
  if (attention == nullptr) return cfg;
  cfg.dropout = probability_or(*attention, {"attn_pdrop"}, 0);
  cfg.scale = number_or(*attention, {"softmax_scale"}, cfg.scale);
  if (const Node* limit = find_any(*attention, {"clip_qkv"})) {
    if (limit->as_number(0, 1e9) > 0)
      limit->refuse(
          "clamped queries, keys and values are not modelled; record the step with "
          "memfathom capture");
  }
  return cfg;
}

// scores.masked_fill(mask, lowest)
Tensor masked(const Tensor& scores, const Tensor& mask) {
  Session& session = scores.session();
  Recording tape(session, "masked_fill", {&scores});
  tape.save(mask);
  Tensor out = session.empty(scores.shape(), scores.dtype());
  tape.finish(out, [](Backward& b) {
    const Tensor kept = b.saved(0);
    const Tensor gradient = b.gradient();
    b.give(0, b.session().empty(gradient.shape(), gradient.dtype()));
  });
  return out;
}

class MptBlock {
 public:
  MptBlock(Builder& builder, const MptConfig& cfg, std::size_t index)
      : config_(cfg), index_(index) {
    const LinearOptions plain{.bias = false};
    first_norm_ = make_norm(builder, "norm_1", NormKind::kLayer, cfg.hidden, false);
    {
      const PathScope scope(builder, "attn");
      qkv_ = make_linear(builder, "Wqkv", cfg.hidden, 3 * cfg.hidden, plain);
      output_ = make_linear(builder, "out_proj", cfg.hidden, cfg.hidden, plain);
    }
    second_norm_ = make_norm(builder, "norm_2", NormKind::kLayer, cfg.hidden, false);
    const PathScope scope(builder, "ffn");
    mlp_.activation = Activation::kGelu;
    mlp_.first = make_linear(builder, "up_proj", cfg.hidden, 4 * cfg.hidden, plain);
    mlp_.second = make_linear(builder, "down_proj", 4 * cfg.hidden, cfg.hidden, plain);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    Tensor normed = first_norm_(x);
    const Attended attended = attention(normed, pass);
    Tensor hidden;
    {
      const Tensor dropped = dropout(attended.output, config_.dropout);
      hidden = add(dropped, x);
    }
    normed = second_norm_(hidden);
    Tensor fed = mlp_(normed);
    fed = dropout(fed, config_.dropout);
    Tensor output = add(fed, hidden);
    if (const auto last = pass.last_weights.lock()) *last = attended.weights;
    return output;
  }

 private:
  Attended attention(const Tensor& x, const Pass& pass) const {
    const Tensor fused = qkv_(x);  // Python's `mixed_qkv`
    const std::vector<Tensor> parts = chunk(fused, 3, -1);
    const Tensor q = split_heads(parts[0], config_.head_size());
    Tensor k = split_heads(parts[1], config_.head_size());
    Tensor v = split_heads(parts[2], config_.head_size());
    if (pass.cache != nullptr) pass.cache->update(index_, k, v);
    Tensor scores = matmul(q, transpose(k, 2, 3));
    scores = mul_scalar(scores, config_.scale);
    scores = add(scores, pass.biases);
    if (pass.mask) scores = masked(scores, pass.mask);
    Tensor weights;
    {
      const Tensor wide = softmax_fp32(scores);
      weights = to_dtype(wide, v.dtype());
    }
    weights = dropout(weights, config_.dropout);
    Tensor context = matmul(weights, v);
    context = merge_heads(contiguous(transpose(context, 1, 2)));
    return {output_(context), weights};
  }

  MptConfig config_;
  std::size_t index_;
  NormLayer first_norm_, second_norm_;
  Linear qkv_, output_;
  PlainMlp mlp_;
};

DecoderOutline outline_of(const MptConfig& cfg) {
  DecoderOutline outline;
  outline.layers = cfg.layers;
  outline.hidden = cfg.hidden;
  outline.vocabulary = cfg.vocabulary;
  outline.tied_by_default = true;
  outline.norm_bias = false;
  outline.scope = "transformer";
  outline.embedding = "wte";
  outline.blocks = "blocks";
  outline.last_norm = "norm_f";
  return outline;
}

// The library has no other attention for it.
ModelSettings eager(ModelSettings settings) {
  settings.attention = AttentionImplementation::kEager;
  return settings;
}

class Mpt final : public Decoder<MptBlock> {
 public:
  Mpt(Builder& builder, const Node& config, const ModelSettings& settings, MptConfig cfg)
      : Decoder(builder, eager(settings), outline_of(cfg)),
        heads_(cfg.heads),
        positions_(cfg.positions) {
    cfg.dropout = dropout_or(cfg.dropout);
    build(builder, config, [&](std::size_t index) { return MptBlock(builder, cfg, index); });
  }

 private:
  // Biases of all positions of the model; the mask as truth values.
  void complete(Pass& pass, const Tensor& embeddings) override {
    const std::int64_t queries = embeddings.size(1);
    const std::int64_t keys = pass.cache != nullptr ? pass.cache->key_length(queries, 0) : queries;
    all_biases_ = session().empty({heads_, 1, positions_}, DType::kFp32);
    pass.biases = slice(all_biases_, -1, positions_ - keys, positions_);
    if (pass.mask) pass.mask = session().empty(pass.mask.shape(), DType::kBool);
  }

  std::int64_t heads_, positions_;
  Tensor all_biases_;
};

}  // namespace

std::unique_ptr<Network> make_mpt(Builder& builder, const Node& config,
                                  const ModelSettings& settings) {
  return std::make_unique<Mpt>(builder, config, settings, read_plan(config));
}

}  // namespace memfathom
