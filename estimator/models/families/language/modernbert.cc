// ModernBERT: an encoder with rotary positions, gated feed-forward parts, and windows in most
// layers.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/models/blocks/bert_config.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/encoder_model.h"
#include "estimator/models/blocks/language_loss.h"
#include "estimator/models/blocks/norm_layer.h"
#include "estimator/models/blocks/pass.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct ModernBertConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, ffn = 0, vocabulary = 0;
  std::int64_t window = 64;  // to each side, in layers that have one
  std::vector<bool> windowed;
  bool norm_bias = false, attention_bias = false, mlp_bias = false;
  bool classifier_bias = false, decoder_bias = true, tied = true;
  double attention_dropout = 0, mlp_dropout = 0, embedding_dropout = 0, classifier_dropout = 0;
  Activation activation = Activation::kGelu, classifier_activation = Activation::kGelu;
  TaskHead task = TaskHead::kVocabulary;
  std::int64_t outputs = 0;  // of a head that is not over the vocabulary
  bool pools_mean = false;

  std::int64_t head_size() const { return hidden / heads; }
};

// `layer_types` of newer configs, or every n-th layer without a window.
std::vector<bool> windowed_layers(const Node& config, std::int64_t layers) {
  std::vector<bool> windowed;
  windowed.reserve(static_cast<std::size_t>(layers));
  const std::int64_t every = count_or(config, {"global_attn_every_n_layers"}, 3, kMaxLayers);
  const Node* types = find_any(config, {"layer_types"});
  if (types != nullptr && static_cast<std::int64_t>(types->items().size()) != layers)
    types->refuse("it must name as many layers as num_hidden_layers says");
  for (std::int64_t i = 0; i < layers; ++i) {
    windowed.push_back(types == nullptr ? i % every != 0
                                        : types->items()[static_cast<std::size_t>(i)].as_choice(
                                              {"full_attention", "sliding_attention"}) == 1);
  }
  return windowed;
}

ModernBertConfig read_plan(const Node& config, const ModelSettings& settings) {
  ModernBertConfig cfg;
  cfg.hidden = count_or(config, {"hidden_size"}, 768);
  cfg.layers = count_or(config, {"num_hidden_layers"}, 22, kMaxLayers);
  cfg.heads = count_or(config, {"num_attention_heads"}, 12);
  require_divides(config, {"num_attention_heads"}, cfg.heads, cfg.hidden, "hidden_size");
  cfg.ffn = count_or(config, {"intermediate_size"}, 1152);
  cfg.vocabulary = count_or(config, {"vocab_size"}, 50368, kMaxTokens);
  cfg.window = count_or(config, {"local_attention"}, 128, kMaxTokens) / 2;
  cfg.windowed = windowed_layers(config, cfg.layers);
  cfg.norm_bias = flag_or(config, {"norm_bias"}, false);
  cfg.attention_bias = flag_or(config, {"attention_bias"}, false);
  cfg.mlp_bias = flag_or(config, {"mlp_bias"}, false);
  cfg.classifier_bias = flag_or(config, {"classifier_bias"}, false);
  cfg.decoder_bias = flag_or(config, {"decoder_bias"}, true);
  cfg.tied = flag_or(config, {"tie_word_embeddings"}, true);
  const auto dropout = [&](std::string_view name) {
    return settings.dropout.value_or(probability_or(config, {name}, 0));
  };
  cfg.attention_dropout = dropout("attention_dropout");
  cfg.mlp_dropout = dropout("mlp_dropout");
  cfg.embedding_dropout = dropout("embedding_dropout");
  cfg.classifier_dropout = dropout("classifier_dropout");
  cfg.activation = activation_or(config, {"hidden_activation"}, "gelu");
  cfg.classifier_activation = activation_or(config, {"classifier_activation"}, "gelu");
  cfg.task = task_head(config, settings);
  cfg.outputs = head_outputs(config, cfg.task);
  const Node* pooling = find_any(config, {"classifier_pooling"});
  cfg.pools_mean = pooling != nullptr && pooling->as_choice({"cls", "mean"}) == 1;
  return cfg;
}

NormLayer make_plain_norm(Builder& builder, const char* name, const ModernBertConfig& cfg) {
  return make_norm(builder, name, NormKind::kLayer, cfg.hidden, cfg.norm_bias);
}

// x * cos + rotated(x) * sin, each factor in fp32 of its own, and back.
Tensor turned(const Tensor& x, const RotaryTables& tables) {
  const Tensor cos = unsqueeze(tables.cos, 1);
  const Tensor sin = unsqueeze(tables.sin, 1);
  const Tensor plain = mul(to_dtype(x, DType::kFp32), cos);
  Tensor rotated;
  {
    const Tensor wide = to_dtype(x, DType::kFp32);
    const std::int64_t half = x.size(-1) / 2;
    const Tensor parts[] = {neg(slice(wide, -1, half, x.size(-1))), slice(wide, -1, 0, half)};
    rotated = cat(parts, -1);
  }
  rotated = mul(rotated, sin);
  return add(plain, rotated);
}

class ModernBertBlock {
 public:
  ModernBertBlock(Builder& builder, const ModernBertConfig& cfg, std::int64_t index,
                  const AttentionStyle& style)
      : head_size_(cfg.head_size()),
        windowed_(cfg.windowed[static_cast<std::size_t>(index)]),
        mlp_dropout_(cfg.mlp_dropout),
        activation_(cfg.activation),
        style_(style) {
    if (index > 0) first_norm_ = make_plain_norm(builder, "attn_norm", cfg);
    const LinearOptions attention{.bias = cfg.attention_bias};
    const LinearOptions mlp{.bias = cfg.mlp_bias};
    qkv_ = make_linear(builder, "attn.Wqkv", cfg.hidden, 3 * cfg.hidden, attention);
    output_ = make_linear(builder, "attn.Wo", cfg.hidden, cfg.hidden, attention);
    second_norm_ = make_plain_norm(builder, "mlp_norm", cfg);
    up_ = make_linear(builder, "mlp.Wi", cfg.hidden, 2 * cfg.ffn, mlp);
    down_ = make_linear(builder, "mlp.Wo", cfg.ffn, cfg.hidden, mlp);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    const Attended attended = attention(first_norm_ ? (*first_norm_)(x) : x, pass);
    const Tensor hidden = add(x, attended.output);
    return add(hidden, feed_forward(second_norm_(hidden)));
  }

 private:
  Attended attention(const Tensor& x, const Pass& pass) const {
    Tensor q;
    Tensor k;
    Tensor v;
    const Tensor qkv = view(qkv_(x), {x.size(0), x.size(1), 3, -1, head_size_});
    {
      const std::vector<Tensor> parts = unbind(qkv, 2);
      q = transpose(parts[0], 1, 2);
      k = transpose(parts[1], 1, 2);
      v = transpose(parts[2], 1, 2);
    }
    {
      const RotaryTables& tables = windowed_ ? pass.window_rotary : pass.rotary;
      const DType narrow = q.dtype();
      const Tensor wide_q = turned(q, tables);
      const Tensor wide_k = turned(k, tables);
      q = to_dtype(wide_q, narrow);
      k = to_dtype(wide_k, narrow);
    }
    Attended attended = attend(style_, q, k, v, windowed_ ? pass.window_mask : pass.mask);
    attended.output = merge_heads(attended.output);
    attended.output = dropout(output_(attended.output), style_.dropout);
    return attended;
  }

  Tensor feed_forward(const Tensor& x) const {
    const std::vector<Tensor> halves = chunk(up_(x), 2, -1);
    Tensor hidden = mul(activate(activation_, halves[0]), halves[1]);
    hidden = dropout(hidden, mlp_dropout_);
    return down_(hidden);
  }

  std::int64_t head_size_;
  bool windowed_;
  double mlp_dropout_;
  Activation activation_;
  AttentionStyle style_;
  std::optional<NormLayer> first_norm_;  // the first block has none
  NormLayer second_norm_;
  Linear qkv_, output_, up_, down_;
};

class ModernBert final : public EncoderModel {
 public:
  ModernBert(Builder& builder, const ModelSettings& settings, ModernBertConfig cfg)
      : EncoderModel(builder, settings, cfg.task), config_(std::move(cfg)) {
    {
      const PathScope model(builder, "model");
      make_body(builder);
    }
    if (config_.task == TaskHead::kHiddenStates) return;
    dense_ = make_linear(builder, "head.dense", config_.hidden, config_.hidden,
                         {.bias = config_.classifier_bias});
    head_norm_ = make_plain_norm(builder, "head.norm", config_);
    const HeadScope head(builder);
    if (config_.task != TaskHead::kVocabulary) {
      output_ = make_linear(builder, "classifier", config_.hidden, config_.outputs, {.head = true});
    } else if (config_.tied) {
      output_.weight = words_;
      if (config_.decoder_bias)
        output_.bias = builder.parameter("decoder.bias", {config_.vocabulary});
    } else {
      output_ = make_linear(builder, "decoder", config_.hidden, config_.vocabulary,
                            {.bias = config_.decoder_bias, .head = true});
    }
  }

 private:
  void make_body(Builder& builder) {
    words_ = make_words(builder);
    embedding_norm_ = make_plain_norm(builder, "embeddings.norm", config_);
    AttentionStyle style = attention_style(config_.attention_dropout, config_.head_size());
    style.softmax_in_fp32 = true;
    blocks_.reserve(static_cast<std::size_t>(config_.layers));
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      const PathScope block(builder, "layers", i);
      const BlockScope counted(builder, i, config_.layers, config_.hidden);
      blocks_.emplace_back(builder, config_, i, style);
    }
    last_norm_ = make_plain_norm(builder, "final_norm", config_);
    rotary_.emplace(builder, config_.head_size());
    window_rotary_.emplace(builder, config_.head_size());
  }

  Tensor make_words(Builder& builder) const {
    const Shape shape{config_.vocabulary, config_.hidden};
    constexpr const char* kName = "embeddings.tok_embeddings.weight";
    if (config_.task != TaskHead::kVocabulary || !config_.tied)
      return builder.parameter(kName, shape);
    const HeadScope head(builder);
    return builder.parameter(kName, shape);
  }

  Tensor encoded() override {
    Pass pass;
    {
      Tensor positions = session().empty({ids().size(1)}, DType::kInt64);
      pass.positions = unsqueeze(positions, 0);
    }
    Tensor hidden = embedding(words_, ids());
    prepare_embeddings(settings(), hidden);
    hidden = embedding_norm_(hidden);
    hidden = dropout(hidden, config_.embedding_dropout);
    const Tensor embedded = hidden;  // the arguments of its masks name it
    pass.mask = mask_for(hidden.dtype());
    pass.window_mask = mask_for(hidden.dtype(), config_.window);
    pass.rotary = rotary_->tables(pass.positions, hidden.dtype());
    pass.window_rotary = window_rotary_->tables(pass.positions, hidden.dtype());
    for (const ModernBertBlock& block : blocks_)
      hidden = run_block(settings(), block, hidden, pass);
    return last_norm_(hidden);
  }

  Tensor scored(const Tensor& hidden) const override {
    if (config_.task == TaskHead::kHiddenStates) return hidden;
    Tensor x = config_.task == TaskHead::kSequenceLabels ? pooled(hidden) : hidden;
    x = dense_(x);
    x = activate(config_.classifier_activation, x);
    x = head_norm_(x);
    if (config_.task != TaskHead::kVocabulary) x = dropout(x, config_.classifier_dropout);
    return output_(x);
  }

  Tensor own_loss(const Tensor& logits, const TaskLabels& labels) const override {
    if (config_.task == TaskHead::kVocabulary) return masked_lm_loss(logits, labels.first);
    return EncoderModel::own_loss(logits, labels);
  }

  // The first token, or the mean of those that are no padding.
  Tensor pooled(const Tensor& hidden) const {
    if (!config_.pools_mean) return select(hidden, 1, 0);
    const Tensor counted = padding() ? padding() : session().empty(ids().shape(), DType::kBool);
    const Tensor total = sum(mul(hidden, unsqueeze(counted, -1)), {1}, false);
    const Tensor count = session().empty({hidden.size(0), 1}, DType::kInt64);
    return div(total, count);
  }

  ModernBertConfig config_;
  Tensor words_;
  NormLayer embedding_norm_, last_norm_, head_norm_;
  std::vector<ModernBertBlock> blocks_;
  std::optional<Rotary> rotary_, window_rotary_;
  Linear dense_, output_;
};

}  // namespace

// ModernBertForMaskedLM, or with the head that `architectures` names.
std::unique_ptr<Network> make_modernbert(Builder& builder, const Node& config,
                                         const ModelSettings& settings) {
  return std::make_unique<ModernBert>(builder, settings, read_plan(config, settings));
}

}  // namespace memfathom
