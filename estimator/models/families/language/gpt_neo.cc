// GPT-Neo: attention in fp32 without a factor, each layer with a triangle of truth values of its
// own, every other one a window.
#include <utility>
#include <vector>

#include "estimator/models/blocks/causal_model.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/feed_forward.h"
#include "estimator/models/blocks/masks.h"
#include "estimator/models/blocks/norm_layer.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

struct NeoConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, ffn = 0, vocabulary = 0, positions = 0;
  double residual_dropout = 0, embedding_dropout = 0, attention_dropout = 0;
  Activation activation = Activation::kGeluNew;

  std::int64_t head_size() const { return hidden / heads; }
};

NeoConfig read_plan(const Node& config) {
  NeoConfig cfg;
  cfg.hidden = required_count(config, {"hidden_size"});
  cfg.layers = required_count(config, {"num_layers", "num_hidden_layers"}, kMaxLayers);
  cfg.heads = required_count(config, {"num_heads", "num_attention_heads"});
  require_divides(config, {"num_heads", "num_attention_heads"}, cfg.heads, cfg.hidden,
                  "hidden_size");
  cfg.ffn = count_or(config, {"intermediate_size"}, 4 * cfg.hidden, 4 * kMaxWidth);
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.positions = count_or(config, {"max_position_embeddings"}, 2048, kMaxWidth);
  cfg.residual_dropout = probability_or(config, {"resid_dropout"}, 0);
  cfg.embedding_dropout = probability_or(config, {"embed_dropout"}, 0);
  cfg.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  cfg.activation = activation_or(config, {"activation_function"}, "gelu_new");
  return cfg;
}

// torch.where(mask, scores, lowest): the mask is a view of the layer's buffer.
Tensor where_visible(const Tensor& scores) {
  Session& session = scores.session();
  Recording tape(session, "where", {&scores});
  Tensor out = session.empty(scores.shape(), scores.dtype());
  tape.finish(out, [](Backward& b) {
    const Tensor gradient = b.gradient();
    b.give(0, b.session().empty(gradient.shape(), gradient.dtype()));
  });
  return out;
}

class NeoBlock {
 public:
  NeoBlock(Builder& builder, const NeoConfig& cfg, const AttentionStyle& style, std::size_t index)
      : config_(cfg), style_(style), index_(index) {
    first_norm_ = make_norm(builder, "ln_1", NormKind::kLayer, cfg.hidden);
    {
      const PathScope scope(builder, "attn.attention");
      triangle_ = builder.buffer("bias", {1, 1, cfg.positions, cfg.positions}, DType::kBool, false);
      const LinearOptions plain{.bias = false};
      k_ = make_linear(builder, "k_proj", cfg.hidden, cfg.hidden, plain);
      v_ = make_linear(builder, "v_proj", cfg.hidden, cfg.hidden, plain);
      q_ = make_linear(builder, "q_proj", cfg.hidden, cfg.hidden, plain);
      output_ = make_linear(builder, "out_proj", cfg.hidden, cfg.hidden);
    }
    second_norm_ = make_norm(builder, "ln_2", NormKind::kLayer, cfg.hidden);
    const PathScope scope(builder, "mlp");
    mlp_.activation = cfg.activation;
    mlp_.first = make_linear(builder, "c_fc", cfg.hidden, cfg.ffn);
    mlp_.second = make_linear(builder, "c_proj", cfg.ffn, cfg.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    Tensor hidden = first_norm_(x);
    const Attended attended = attention(hidden, pass);
    hidden = add(attended.output, x);
    const Tensor residual = hidden;
    hidden = second_norm_(hidden);
    Tensor fed = mlp_(hidden);
    fed = dropout(fed, config_.residual_dropout);
    Tensor output = add(residual, fed);
    if (const auto last = pass.last_weights.lock()) *last = attended.weights;
    return output;
  }

 private:
  Attended attention(const Tensor& x, const Pass& pass) const {
    const Tensor q = split_heads(q_(x), config_.head_size());
    Tensor k = split_heads(k_(x), config_.head_size());
    Tensor v = split_heads(v_(x), config_.head_size());
    if (pass.cache != nullptr) pass.cache->update(index_, k, v);
    Attended attended = style_.implementation == AttentionImplementation::kFlash
                            ? attend(style_, q, k, v, pass.mask)
                            : attend_in_fp32(q, k, v, pass.mask);
    attended.output = merge_heads(attended.output);
    attended.output = output_(attended.output);
    attended.output = dropout(attended.output, config_.residual_dropout);
    return attended;
  }

  Attended attend_in_fp32(const Tensor& q_in, const Tensor& k_in, const Tensor& v,
                          const Tensor& mask) const {
    const Tensor q = to_dtype(q_in, DType::kFp32);
    const Tensor k = to_dtype(k_in, DType::kFp32);
    Tensor weights = matmul(q, transpose(k, 2, 3));
    weights = where_visible(weights);
    if (mask) weights = add(weights, mask);
    weights = softmax(weights);
    weights = to_dtype(weights, v.dtype());
    weights = dropout(weights, style_.dropout);
    const Tensor output = matmul(weights, v);
    return {contiguous(transpose(output, 1, 2)), weights};
  }

  NeoConfig config_;
  AttentionStyle style_;
  std::size_t index_;
  NormLayer first_norm_, second_norm_;
  Tensor triangle_;
  Linear q_, k_, v_, output_;
  PlainMlp mlp_;
};

// The library has the flash library's attention, and its own for everything else.
ModelSettings own_attention(ModelSettings settings) {
  if (settings.attention != AttentionImplementation::kFlash)
    settings.attention = AttentionImplementation::kEager;
  return settings;
}

class GptNeo final : public CausalModel {
 public:
  GptNeo(Builder& builder, const Node& config, const ModelSettings& given, NeoConfig cfg)
      : CausalModel(builder, own_attention(given), cfg.layers),
        dropout_(dropout_or(cfg.embedding_dropout)) {
    cfg.residual_dropout = dropout_or(cfg.residual_dropout);
    AttentionStyle style = attention_style(cfg.attention_dropout, cfg.head_size());
    style.scale = 1;
    {
      const PathScope scope(builder, "transformer");
      tokens_ = make_embedding(builder, "wte", config, cfg.vocabulary, cfg.hidden, true);
      positions_ = builder.parameter("wpe.weight", {cfg.positions, cfg.hidden});
      blocks_.reserve(static_cast<std::size_t>(cfg.layers));
      for (std::int64_t i = 0; i < cfg.layers; ++i) {
        const PathScope block(builder, "h", i);
        const BlockScope counted(builder, i, cfg.layers, cfg.hidden);
        blocks_.emplace_back(builder, cfg, style, static_cast<std::size_t>(i));
      }
      norm_ = make_norm(builder, "ln_f", NormKind::kLayer, cfg.hidden);
    }
    make_head(builder, config, tokens_, cfg.hidden, cfg.vocabulary, true);
  }

 private:
  Tensor body(const Tensor& ids, KeyValueCache* cache) override {
    Tensor embeddings = embedding(tokens_, ids);
    prepare_embeddings(settings(), embeddings);
    Pass pass = begin_pass(embeddings, cache);
    const Tensor places = embedding(positions_, pass.positions);
    Tensor hidden = add(embeddings, places);
    hidden = dropout(hidden, dropout_);
    const auto last_weights = std::make_shared<Tensor>();
    pass.last_weights = last_weights;
    for (const NeoBlock& block : blocks_) hidden = run_block(settings(), block, hidden, pass);
    return norm_(hidden);
  }

  double dropout_;
  Tensor tokens_, positions_;
  std::vector<NeoBlock> blocks_;
  NormLayer norm_;
};

}  // namespace

std::unique_ptr<Network> make_gpt_neo(Builder& builder, const Node& config,
                                      const ModelSettings& settings) {
  return std::make_unique<GptNeo>(builder, config, settings, read_plan(config));
}

}  // namespace memfathom
