// GPT-2 and its kin GPTBigCode (SantaCoder, StarCoder), as transformers writes them.
#include <cmath>
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
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct Gpt2Config {
  std::int64_t hidden = 0, layers = 0, heads = 0, ffn = 0, vocabulary = 0, positions = 0;
  double residual_dropout = 0.1, embedding_dropout = 0.1, attention_dropout = 0.1;
  bool scales = true, upcasts = false;
  // GPTBigCode (SantaCoder, StarCoder): the same network of plain linear layers; all queries may
  // share one head of keys and values, and the causal mask is a buffer of the model.
  bool bigcode = false, multi_query = false;
  Activation activation = Activation::kGeluNew;

  std::int64_t head_size() const { return hidden / heads; }
  std::int64_t key_width() const { return multi_query ? head_size() : hidden; }
};

Gpt2Config read_plan(const Node& config) {
  Gpt2Config cfg;
  cfg.hidden = required_count(config, {"n_embd", "hidden_size"});
  cfg.layers = required_count(config, {"n_layer", "num_hidden_layers"}, kMaxLayers);
  cfg.heads = required_count(config, {"n_head", "num_attention_heads"});
  require_divides(config, {"n_head", "num_attention_heads"}, cfg.heads, cfg.hidden, "n_embd");
  cfg.ffn = count_or(config, {"n_inner", "intermediate_size"}, 4 * cfg.hidden, 4 * kMaxWidth);
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.positions = count_or(config, {"n_positions", "max_position_embeddings"}, 1024, kMaxTokens);
  cfg.residual_dropout = probability_or(config, {"resid_pdrop"}, 0.1);
  cfg.embedding_dropout = probability_or(config, {"embd_pdrop"}, 0.1);
  cfg.attention_dropout = probability_or(config, {"attn_pdrop"}, 0.1);
  cfg.scales = flag_or(config, {"scale_attn_weights"}, true);
  cfg.upcasts = flag_or(config, {"reorder_and_upcast_attn"}, false);
  cfg.bigcode = config.at("model_type").as_string() == "gpt_bigcode";
  cfg.multi_query = cfg.bigcode && flag_or(config, {"multi_query"}, true);
  cfg.activation = activation_or(config, {"activation_function"},
                                 cfg.bigcode ? "gelu_pytorch_tanh" : "gelu_new");
  return cfg;
}

class Gpt2Block {
 public:
  Gpt2Block(Builder& builder, const Gpt2Config& cfg, const AttentionStyle& style, std::size_t index)
      : hidden_(cfg.hidden),
        head_size_(cfg.head_size()),
        key_width_(cfg.key_width()),
        interleaved_(cfg.bigcode && !cfg.multi_query),
        dropout_(cfg.residual_dropout),
        style_(style),
        upcasts_(cfg.upcasts && style.implementation == AttentionImplementation::kEager),
        index_(index) {
    const LinearOptions kind{.transposed = !cfg.bigcode};
    norm1_ = make_norm(builder, "ln_1", NormKind::kLayer, cfg.hidden);
    {
      const PathScope scope(builder, "attn");
      qkv_ = make_linear(builder, "c_attn", cfg.hidden, cfg.hidden + 2 * cfg.key_width(), kind);
      output_ = make_linear(builder, "c_proj", cfg.hidden, cfg.hidden, kind);
    }
    norm2_ = make_norm(builder, "ln_2", NormKind::kLayer, cfg.hidden);
    const PathScope scope(builder, "mlp");
    mlp_.activation = cfg.activation;
    mlp_.first = make_linear(builder, "c_fc", cfg.hidden, cfg.ffn, kind);
    mlp_.second = make_linear(builder, "c_proj", cfg.ffn, cfg.hidden, kind);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    Tensor hidden = norm1_(x);
    const Attended attended = attention(hidden, pass);
    hidden = add(attended.output, x);
    const Tensor residual = hidden;
    hidden = norm2_(hidden);
    const Tensor fed = feed_forward(hidden);
    return add(residual, fed);
  }

 private:
  Attended attention(const Tensor& x, const Pass& pass) const {
    Tensor q;
    Tensor k;
    Tensor v;
    take_apart(qkv_(x), q, k, v);
    if (pass.cache != nullptr) pass.cache->update(index_, k, v);
    Attended attended =
        upcasts_ ? attend_in_fp32(q, k, v, pass.mask) : attend(style_, q, k, v, pass.mask);
    attended.output = merge_heads(attended.output);
    attended.output = output_(attended.output);
    attended.output = dropout(attended.output, dropout_);
    return attended;
  }

  // [b, heads, s, d] of queries, keys and values: views of the fused product.
  void take_apart(const Tensor& fused, Tensor& q, Tensor& k, Tensor& v) const {
    if (interleaved_) {
      const std::int64_t sizes[] = {head_size_, head_size_, head_size_};
      std::vector<Tensor> parts = split(split_heads(fused, 3 * head_size_), sizes, 3);
      q = std::move(parts[0]);
      k = std::move(parts[1]);
      v = std::move(parts[2]);
      return;
    }
    const std::int64_t sizes[] = {hidden_, key_width_, key_width_};
    const std::vector<Tensor> parts = split(fused, sizes, 2);
    k = split_heads(parts[1], head_size_);
    v = split_heads(parts[2], head_size_);
    q = split_heads(parts[0], head_size_);
  }

  // reorder_and_upcast_attn: the product of q and k in fp32 whatever autocast says, into a tensor
  // made before.
  Attended attend_in_fp32(const Tensor& q, const Tensor& k, const Tensor& v,
                          const Tensor& mask) const {
    Session& session = q.session();
    const std::int64_t heads = q.size(0) * q.size(1);
    Tensor weights = session.empty({heads, q.size(2), k.size(2)}, DType::kFp32);
    const Tensor rows = reshape(q, {heads, q.size(2), head_size_});
    const Tensor columns = reshape(transpose(k, 2, 3), {heads, head_size_, k.size(2)});
    {
      const AutocastScope off(session, std::nullopt);
      weights = bmm(to_dtype(rows, DType::kFp32), to_dtype(columns, DType::kFp32));
    }
    weights = view(weights, {q.size(0), q.size(1), q.size(2), k.size(2)});
    if (mask) weights = add(weights, mask);
    weights = softmax(weights);
    weights = to_dtype(weights, v.dtype());
    weights = dropout(weights, style_.dropout);
    return {transpose(matmul(weights, v), 1, 2), weights};
  }

  Tensor feed_forward(const Tensor& x) const {
    const Tensor fed = mlp_(x);
    return dropout(fed, dropout_);
  }

  std::int64_t hidden_, head_size_, key_width_;
  bool interleaved_;
  double dropout_;
  AttentionStyle style_;
  bool upcasts_;
  std::size_t index_;
  NormLayer norm1_, norm2_;
  Linear qkv_, output_;
  PlainMlp mlp_;
};

class Gpt2 final : public CausalModel {
 public:
  Gpt2(Builder& builder, const Node& config, const ModelSettings& settings, Gpt2Config cfg)
      : CausalModel(builder, settings, cfg.layers), dropout_(dropout_or(cfg.embedding_dropout)) {
    cfg.residual_dropout = dropout_or(cfg.residual_dropout);
    AttentionStyle style = attention_style(cfg.attention_dropout, cfg.head_size());
    if (!cfg.scales) style.scale = 1;
    style.softmax_in_fp32 = cfg.bigcode;
    style.weights_in_values_type = !cfg.bigcode;
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
      if (cfg.bigcode)
        triangle_ = builder.buffer("bias", {cfg.positions, cfg.positions}, DType::kBool, false);
    }
    make_head(builder, config, tokens_, cfg.hidden, cfg.vocabulary, true);
  }

 private:
  Tensor body(const Tensor& ids, KeyValueCache* cache) override {
    Tensor embeddings = embedding(tokens_, ids);
    prepare_embeddings(settings(), embeddings);
    Pass pass;
    pass.cache = cache;
    pass.positions = positions_for(embeddings, cache);
    const Tensor position_embeddings = embedding(positions_, pass.positions);
    Tensor hidden = add(embeddings, position_embeddings);
    pass.mask = mask_for(embeddings, cache, 0);
    pass.mask_is_positional = true;
    hidden = dropout(hidden, dropout_);
    for (const Gpt2Block& block : blocks_) hidden = run_block(settings(), block, hidden, pass);
    hidden = norm_(hidden);
    return hidden;
  }

  double dropout_;
  Tensor tokens_, positions_, triangle_;
  std::vector<Gpt2Block> blocks_;
  NormLayer norm_;
};

}  // namespace

std::unique_ptr<Network> make_gpt2(Builder& builder, const Node& config,
                                   const ModelSettings& settings) {
  return std::make_unique<Gpt2>(builder, config, settings, read_plan(config));
}

}  // namespace memfathom
