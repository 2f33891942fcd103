// LitGPT: its one model class, which runs the configs of several families in code of its own.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "estimator/models/blocks/attention.h"
#include "estimator/models/blocks/feed_forward.h"
#include "estimator/models/blocks/masks.h"
#include "estimator/models/blocks/pass.h"
#include "estimator/models/families/families.h"
#include "estimator/models/families/language/litgpt/litgpt_config.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

// Positions whose logits are one tensor in training.
constexpr std::int64_t kChunk = 128;

class LitgptBlock {
 public:
  LitgptBlock(Builder& builder, const LitgptConfig& cfg, const AttentionStyle& style,
              std::size_t index)
      : config_(cfg), style_(style), index_(index) {
    attention_norm_ = make_norm(builder, "norm_1", cfg.norm, cfg.hidden);
    // Parts have the names that transformers gives them: adapters are aimed at those.
    qkv_ = make_linear(builder, "qkv", cfg.hidden, cfg.qkv_width(),
                       {.bias = cfg.bias || cfg.qkv_bias});
    output_ =
        make_linear(builder, "o_proj", cfg.heads * cfg.head_size, cfg.hidden, {.bias = cfg.bias});
    if (!cfg.shared_norm) mlp_norm_ = make_norm(builder, "norm_2", cfg.norm, cfg.hidden);
    const auto in = [&](const char* name) {
      return make_linear(builder, name, cfg.hidden, cfg.ffn, {.bias = cfg.bias});
    };
    if (cfg.gated) {
      gated_.activation = cfg.activation;
      gated_.gate = in("gate_proj");
      gated_.up = in("up_proj");
    } else {
      plain_.activation = cfg.activation;
      plain_.first = in("up_proj");
    }
    (cfg.gated ? gated_.down : plain_.second) =
        make_linear(builder, "down_proj", cfg.ffn, cfg.hidden, {.bias = cfg.bias});
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    Tensor normed = attention_norm_(x);
    const Tensor attended = attention(normed, pass);
    if (config_.parallel && !config_.shared_norm) normed = mlp_norm_(x);
    const Tensor joined = add(attended, x);
    if (!config_.parallel) normed = mlp_norm_(joined);
    const Tensor fed = config_.gated ? gated_(normed) : plain_(normed);
    return add(fed, joined);
  }

 private:
  // Queries, keys and values are views of one product; values stay one where heads have their own.
  Tensor attention(const Tensor& x, const Pass& pass) const {
    const std::int64_t width = config_.groups * config_.head_size;
    const std::int64_t sizes[] = {config_.heads * config_.head_size, width, width};
    const std::vector<Tensor> parts = split(qkv_(x), sizes, -1);
    const auto rotated = [&](const Tensor& part) {
      return rotate_and_join(split_heads(part, config_.head_size), pass.rotary);
    };
    const Tensor q = rotated(parts[0]);
    Tensor k = rotated(parts[1]);
    Tensor v = split_heads(parts[2], config_.head_size);
    if (pass.cache != nullptr) pass.cache->update(index_, k, v);
    k = repeat_interleave_heads(k, config_.heads / config_.groups);
    v = repeat_interleave_heads(v, config_.heads / config_.groups);
    return output_(merge_heads(attend(style_, q, k, v, pass.mask).output));
  }

  LitgptConfig config_;
  AttentionStyle style_;
  std::size_t index_;
  NormLayer attention_norm_, mlp_norm_;
  Linear qkv_, output_;
  GatedMlp gated_;
  PlainMlp plain_;
};

class Litgpt final : public Network {
 public:
  Litgpt(Builder& builder, const LitgptConfig& cfg, const ModelSettings& settings)
      : session_(builder.session()), config_(cfg), settings_(settings) {
    require_sequence_length(settings_);
    AttentionStyle style;
    style.implementation = settings.attention;
    style.scale = 1 / std::sqrt(static_cast<double>(cfg.head_size));
    {
      const HeadScope scope(builder);
      head_ = make_linear(builder, "lm_head", cfg.hidden, cfg.vocabulary,
                          {.bias = cfg.head_bias, .head = true});
    }
    embedding_ = builder.parameter("wte.weight", {cfg.vocabulary, cfg.hidden});
    blocks_.reserve(static_cast<std::size_t>(cfg.layers));
    for (std::int64_t i = 0; i < cfg.layers; ++i) {
      const PathScope block(builder, "h", i);
      const BlockScope counted(builder, i, cfg.layers, cfg.hidden);
      blocks_.emplace_back(builder, config_, style, static_cast<std::size_t>(i));
    }
    norm_ = make_norm(builder, "ln_f", cfg.norm, cfg.hidden);
    cos_ = builder.buffer("cos", {positions(), cfg.rotary}, builder.options().dtype, false);
    sin_ = builder.buffer("sin", {positions(), cfg.rotary}, builder.options().dtype, false);
  }

  void load_batch(std::int64_t size, bool targets) override {
    logits_.clear();
    const BatchScope scope(session_, {&ids_, &labels_});
    const Shape shape{size, settings_.sequence_length};
    ids_ = session_.zeros(shape, DType::kInt64);
    if (targets) labels_ = session_.zeros(shape, DType::kInt64);
  }

  bool set_length(std::int64_t length) override {
    settings_.sequence_length = std::min(length, positions());
    return true;
  }

  // The head in chunks; Fabric hands them out in fp32, and the script's `logits` keeps them.
  Tensor loss(Tensor*) override {
    const Tensor hidden = body(ids_, nullptr);
    const ComponentScope scope(session_, Component::kLogitsLoss);
    const std::vector<std::int64_t> sizes = chunk_sizes();
    std::vector<Tensor> narrow;
    for (const Tensor& part : split(hidden, sizes, 1)) narrow.push_back(head_(part));
    for (const Tensor& part : narrow) logits_.push_back(to_dtype(part, DType::kFp32));
    narrow.clear();
    const std::vector<Tensor> wanted = split(labels_, sizes, 1);
    Tensor sum;
    for (std::size_t i = 0; i < logits_.size(); ++i) {
      const Tensor part = cross_entropy(view(logits_[i], {-1, config_.vocabulary}),
                                        view(contiguous(wanted[i]), {-1}));
      sum = sum ? add(sum, part) : part;
    }
    return sum;
  }

  Tensor forward() override { return logits_of(body(ids_, nullptr)); }

  Tensor prefill() override {
    cache_ = std::make_unique<KeyValueCache>(KvCache::kStatic, config_.layers, positions());
    return next_token(ids_);
  }

  Tensor decode() override {
    const Tensor ids = token_;
    return next_token(ids);
  }
  bool skip_tokens(std::int64_t tokens) override {
    cache_->skip(tokens);
    return true;
  }

  void end_generation() override {
    cache_.reset();
    token_.reset();
  }

 private:
  std::int64_t positions() const { return settings_.sequence_length + settings_.new_tokens; }

  std::vector<std::int64_t> chunk_sizes() const {
    const std::int64_t length = settings_.sequence_length;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(length / kChunk), kChunk);
    if (length % kChunk > 0) sizes.push_back(length % kChunk);
    return sizes;
  }

  Tensor logits_of(const Tensor& hidden) {
    const ComponentScope scope(session_, Component::kLogitsLoss);
    return to_dtype(head_(hidden), DType::kFp32);
  }

  Tensor next_token(const Tensor& ids) {
    const Tensor hidden = body(ids, cache_.get());
    cache_->advance(ids.size(1));
    Tensor logits = logits_of(hidden);
    const ComponentScope scope(session_, Component::kInputs);
    token_ = session_.zeros({ids.size(0), 1}, DType::kInt64);
    return logits;
  }

  Tensor body(const Tensor& ids, KeyValueCache* cache) {
    Tensor hidden = embedding(embedding_, ids);
    if (config_.scaled_embeddings) hidden = mul_scalar(hidden, 1);
    prepare_embeddings(settings_, hidden);
    Pass pass;
    pass.cache = cache;
    pass.rotary = {unsqueeze(slice(cos_, 0, 0, ids.size(1)), 0),
                   unsqueeze(slice(sin_, 0, 0, ids.size(1)), 0)};
    if (cache != nullptr && cache->needs_mask(ids.size(1)))
      pass.mask = session_.empty({1, 1, ids.size(1), positions()}, DType::kBool);
    for (const LitgptBlock& block : blocks_) hidden = run_block(settings_, block, hidden, pass);
    return norm_(hidden);
  }

  Session& session_;
  LitgptConfig config_;
  ModelSettings settings_;
  Linear head_;
  Tensor embedding_, cos_, sin_;
  std::vector<LitgptBlock> blocks_;
  NormLayer norm_;
  Tensor ids_, labels_, token_;
  std::vector<Tensor> logits_;
  std::unique_ptr<KeyValueCache> cache_;
};

}  // namespace

// For configs of Llama's kind, Phi, GPT-NeoX and Falcon; others are refused. The first batch of its
// loaders is the longest, so the logits of one iteration are gone when the next begins.
std::unique_ptr<Network> make_litgpt(Builder& builder, const Node& config,
                                     const ModelSettings& settings) {
  auto made = std::make_unique<Litgpt>(builder, read_litgpt_config(config), settings);
  builder.finish();
  return made;
}

}  // namespace memfathom
