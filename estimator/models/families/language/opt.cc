// OPT: learned positions, layer norms, plain MLP; its widest models project a narrower embedding.
#include <optional>
#include <utility>
#include <vector>

#include "estimator/models/blocks/causal_model.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/feed_forward.h"
#include "estimator/models/blocks/norm_layer.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

// OPT's table begins two rows before the first position.
constexpr std::int64_t kPositionOffset = 2;

struct OptConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, ffn = 0, vocabulary = 0, positions = 0,
               embedding = 0;
  double dropout = 0.1, attention_dropout = 0;
  bool bias = true, norm_first = true, final_norm = true;
  bool copies_heads = false;  // before transformers 4.49
  Activation activation = Activation::kRelu;
};

OptConfig read_plan(const Node& config) {
  OptConfig cfg;
  cfg.hidden = required_count(config, {"hidden_size"});
  cfg.layers = required_count(config, {"num_hidden_layers"}, kMaxLayers);
  cfg.heads = required_count(config, {"num_attention_heads"});
  require_divides(config, {"num_attention_heads"}, cfg.heads, cfg.hidden, "hidden_size");
  cfg.ffn = required_count(config, {"ffn_dim"});
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.positions = count_or(config, {"max_position_embeddings"}, 2048, kMaxTokens);
  cfg.embedding = count_or(config, {"word_embed_proj_dim"}, cfg.hidden);
  cfg.dropout = probability_or(config, {"dropout"}, 0.1);
  cfg.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  cfg.bias = flag_or(config, {"enable_bias"}, true);
  if (!flag_or(config, {"layer_norm_elementwise_affine"}, true))
    config.at("layer_norm_elementwise_affine")
        .refuse("norms without weights are not modelled; record the step with memfathom capture");
  cfg.norm_first = flag_or(config, {"do_layer_norm_before"}, true);
  cfg.final_norm = cfg.norm_first && !flag_or(config, {"_remove_final_layer_norm"}, false);
  cfg.activation = activation_or(config, {"activation_function"}, "relu");
  return cfg;
}

class OptBlock {
 public:
  OptBlock(Builder& builder, const OptConfig& cfg, const AttentionStyle& style, std::size_t index)
      : config_(cfg), style_(style), index_(index) {
    {
      const PathScope scope(builder, "self_attn");
      k_ = make_linear(builder, "k_proj", cfg.hidden, cfg.hidden, {.bias = cfg.bias});
      v_ = make_linear(builder, "v_proj", cfg.hidden, cfg.hidden, {.bias = cfg.bias});
      q_ = make_linear(builder, "q_proj", cfg.hidden, cfg.hidden, {.bias = cfg.bias});
      output_ = make_linear(builder, "out_proj", cfg.hidden, cfg.hidden, {.bias = cfg.bias});
    }
    attention_norm_ = make_norm(builder, "self_attn_layer_norm", NormKind::kLayer, cfg.hidden);
    mlp_.activation = cfg.activation;
    mlp_.first = make_linear(builder, "fc1", cfg.hidden, cfg.ffn, {.bias = cfg.bias});
    mlp_.second = make_linear(builder, "fc2", cfg.ffn, cfg.hidden, {.bias = cfg.bias});
    mlp_norm_ = make_norm(builder, "final_layer_norm", NormKind::kLayer, cfg.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    Tensor hidden = config_.norm_first ? attention_norm_(x) : x;
    Tensor weights;
    {
      Attended attended = attention(hidden, pass);
      hidden = std::move(attended.output);
      weights = std::move(attended.weights);
    }
    hidden = dropout(hidden, config_.dropout);
    hidden = add(x, hidden);
    if (!config_.norm_first) hidden = attention_norm_(hidden);
    hidden = reshape(hidden, {-1, config_.hidden});
    const Tensor residual = hidden;
    if (config_.norm_first) hidden = mlp_norm_(hidden);
    // No module of its own: nobody holds the norm's result while the activation runs.
    hidden = mlp_.first(hidden);
    hidden = activate(mlp_.activation, hidden);
    hidden = mlp_.second(hidden);
    hidden = dropout(hidden, config_.dropout);
    hidden = add(residual, hidden);
    hidden = view(hidden, x.shape());
    if (!config_.norm_first) hidden = mlp_norm_(hidden);
    return hidden;
  }

 private:
  Attended attention(const Tensor& x, const Pass& pass) const {
    const std::int64_t head_size = config_.hidden / config_.heads;
    Tensor q = q_(x);
    q = mul_scalar(q, style_.scale);
    q = split_heads(q, head_size);
    Tensor k = split_heads(k_(x), head_size);
    Tensor v = split_heads(v_(x), head_size);
    if (config_.copies_heads) {
      q = contiguous(q);
      k = contiguous(k);
      v = contiguous(v);
    }
    if (pass.cache != nullptr) pass.cache->update(index_, k, v);
    AttentionStyle unscaled = style_;
    unscaled.scale = 1;
    Attended attended = attend(unscaled, q, k, v, pass.mask);
    attended.output = merge_heads(attended.output);
    attended.output = output_(attended.output);
    return attended;
  }

  OptConfig config_;
  AttentionStyle style_;
  std::size_t index_;
  Linear q_, k_, v_, output_;
  NormLayer attention_norm_, mlp_norm_;
  PlainMlp mlp_;
};

class Opt final : public CausalModel {
 public:
  Opt(Builder& builder, const Node& config, const ModelSettings& settings, OptConfig cfg)
      : CausalModel(builder, settings, cfg.layers) {
    cfg.dropout = dropout_or(cfg.dropout);
    cfg.copies_heads = settings.transformers.opt_has_its_own_attention();
    AttentionStyle style = attention_style(cfg.attention_dropout, cfg.hidden / cfg.heads);
    style.raises_scores = cfg.copies_heads;
    {
      const PathScope scope(builder, "model.decoder");
      tokens_ =
          make_embedding(builder, "embed_tokens", config, cfg.vocabulary, cfg.embedding, true);
      positions_ = builder.parameter("embed_positions.weight",
                                     {cfg.positions + kPositionOffset, cfg.hidden});
      if (cfg.embedding != cfg.hidden) {
        project_out_ =
            make_linear(builder, "project_out", cfg.hidden, cfg.embedding, {.bias = false});
        project_in_ =
            make_linear(builder, "project_in", cfg.embedding, cfg.hidden, {.bias = false});
      }
      if (cfg.final_norm)
        norm_ = make_norm(builder, "final_layer_norm", NormKind::kLayer, cfg.hidden);
      blocks_.reserve(static_cast<std::size_t>(cfg.layers));
      for (std::int64_t i = 0; i < cfg.layers; ++i) {
        const PathScope block(builder, "layers", i);
        const BlockScope counted(builder, i, cfg.layers, cfg.hidden);
        blocks_.emplace_back(builder, cfg, style, static_cast<std::size_t>(i));
      }
    }
    make_head(builder, config, tokens_, cfg.embedding, cfg.vocabulary, true);
  }

 private:
  Tensor body(const Tensor& ids, KeyValueCache* cache) override {
    Tensor embeddings = embedding(tokens_, ids);
    prepare_embeddings(settings(), embeddings);
    Pass pass;
    pass.cache = cache;
    // Positions are counted from a mask of ones: cumsum, product, difference, long.
    const Tensor ones = session().empty(ids.shape(), DType::kFp32);
    Tensor counted = session().empty(ids.shape(), DType::kFp32);
    counted = session().empty(ids.shape(), DType::kFp32);
    counted = session().empty(ids.shape(), DType::kFp32);
    pass.positions = session().empty(ids.shape(), DType::kInt64);
    pass.mask = mask_for(embeddings, cache, 0);
    Tensor position_embeddings;
    {
      const Tensor shifted = session().empty(ids.shape(), DType::kInt64);
      position_embeddings = embedding(positions_, shifted);
    }
    if (project_in_) embeddings = (*project_in_)(embeddings);
    Tensor hidden = add(embeddings, position_embeddings);
    for (const OptBlock& block : blocks_) hidden = run_block(settings(), block, hidden, pass);
    if (norm_) hidden = (*norm_)(hidden);
    if (project_out_) hidden = (*project_out_)(hidden);
    return hidden;
  }

  Tensor tokens_, positions_;
  std::optional<Linear> project_out_, project_in_;
  std::optional<NormLayer> norm_;
  std::vector<OptBlock> blocks_;
};

}  // namespace

std::unique_ptr<Network> make_opt(Builder& builder, const Node& config,
                                  const ModelSettings& settings) {
  return std::make_unique<Opt>(builder, config, settings, read_plan(config));
}

}  // namespace memfathom
