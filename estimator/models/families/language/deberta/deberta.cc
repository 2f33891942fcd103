// DeBERTa v2 and v3: an encoder that attends by content and by distance.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/models/blocks/bert_config.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/encoder_model.h"
#include "estimator/models/blocks/language_loss.h"
#include "estimator/models/blocks/norm_layer.h"
#include "estimator/models/families/families.h"
#include "estimator/models/families/language/deberta/deberta_attention.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct DebertaConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, ffn = 0, vocabulary = 0, positions = 0;
  std::int64_t embedding = 0, token_types = 0;
  bool position_table = true, norms_distances = false, tied = true;
  DebertaDistances distances;
  double dropout = 0.1, attention_dropout = 0.1, pooler_dropout = 0, classifier_dropout = 0.1;
  Activation activation = Activation::kGelu, pooler_activation = Activation::kGelu;
  TaskHead task = TaskHead::kVocabulary;
  std::int64_t outputs = 0;  // of a head that is not over the vocabulary
};

// `pos_att_type`: a list of names, or one word "p2c|c2p".
bool attends(const Node& config, std::string_view kind) {
  const Node* types = find_any(config, {"pos_att_type"});
  if (types == nullptr) return false;
  if (types->is_string()) return types->as_string().find(kind) != std::string::npos;
  for (const Node& type : types->items()) {
    if (type.as_string() == kind) return true;
  }
  return false;
}

DebertaDistances read_distances(const Node& config, std::int64_t positions) {
  DebertaDistances read;
  read.relative = flag_or(config, {"relative_attention"}, false);
  read.to_keys = attends(config, "c2p");
  read.to_queries = attends(config, "p2c");
  read.shared = flag_or(config, {"share_att_key"}, false);
  const auto positive = [&](std::string_view name, std::int64_t otherwise) {
    const Node* found = find_any(config, {name});
    const std::int64_t value = found != nullptr ? found->as_int(-1, kMaxTokens) : -1;
    return value > 0 ? value : otherwise;
  };
  read.span = positive("position_buckets", positive("max_relative_positions", positions));
  return read;
}

DebertaConfig read_plan(const Node& config, const ModelSettings& settings) {
  if (const Node* conv = find_any(config, {"conv_kernel_size"});
      conv != nullptr && conv->as_int(0, kMaxWidth) > 0)
    conv->refuse("DeBERTa with a convolution (v2-xlarge) is not known");
  if (!flag_or(config, {"legacy"}, true))
    config.at("legacy").refuse("DeBERTa's newer head is not known");
  DebertaConfig cfg;
  cfg.hidden = required_count(config, {"hidden_size"});
  cfg.layers = required_count(config, {"num_hidden_layers"}, kMaxLayers);
  cfg.heads = required_count(config, {"num_attention_heads"});
  require_divides(config, {"num_attention_heads"}, cfg.heads, cfg.hidden, "hidden_size");
  cfg.ffn = required_count(config, {"intermediate_size"});
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.positions = count_or(config, {"max_position_embeddings"}, 512, kMaxTokens);
  cfg.embedding = count_or(config, {"embedding_size"}, cfg.hidden);
  const Node* types = find_any(config, {"type_vocab_size"});
  cfg.token_types = types != nullptr ? types->as_int(0, kMaxTokens) : 0;
  cfg.position_table = flag_or(config, {"position_biased_input"}, true);
  const Node* norm = find_any(config, {"norm_rel_ebd"});
  cfg.norms_distances =
      norm != nullptr && norm->as_string().find("layer_norm") != std::string::npos;
  cfg.tied = flag_or(config, {"tie_word_embeddings"}, true);
  cfg.distances = read_distances(config, cfg.positions);
  const auto dropout = [&](std::string_view name, double own) {
    return settings.dropout.value_or(probability_or(config, {name}, own));
  };
  cfg.dropout = dropout("hidden_dropout_prob", 0.1);
  cfg.attention_dropout = dropout("attention_probs_dropout_prob", 0.1);
  cfg.pooler_dropout = dropout("pooler_dropout", 0);
  cfg.classifier_dropout = dropout("cls_dropout", cfg.dropout);
  cfg.activation = activation_or(config, {"hidden_act"}, "gelu");
  cfg.pooler_activation = activation_or(config, {"pooler_hidden_act"}, "gelu");
  cfg.task = task_head(config, settings);
  cfg.outputs = head_outputs(config, cfg.task);
  return cfg;
}

class DebertaBlock {
 public:
  DebertaBlock(Builder& builder, const DebertaConfig& cfg)
      : dropout_(cfg.dropout),
        activation_(cfg.activation),
        attention_(make_attention(builder, cfg)) {
    output_ = make_linear(builder, "attention.output.dense", cfg.hidden, cfg.hidden);
    output_norm_ = make_norm(builder, "attention.output.LayerNorm", NormKind::kLayer, cfg.hidden);
    first_ = make_linear(builder, "intermediate.dense", cfg.hidden, cfg.ffn);
    second_ = make_linear(builder, "output.dense", cfg.ffn, cfg.hidden);
    second_norm_ = make_norm(builder, "output.LayerNorm", NormKind::kLayer, cfg.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    Tensor attended = attention_(x, pass);
    attended = closed(output_, output_norm_, attended, x);
    const Tensor wide = activate(activation_, first_(attended));
    return closed(second_, second_norm_, wide, attended);
  }

 private:
  static DebertaAttention make_attention(Builder& builder, const DebertaConfig& cfg) {
    const PathScope scope(builder, "attention.self");
    return {builder, cfg.hidden, cfg.heads, cfg.distances, cfg.dropout, cfg.attention_dropout};
  }

  // norm(dropout(dense(x)) + residual)
  Tensor closed(const Linear& dense, const NormLayer& norm, const Tensor& x,
                const Tensor& residual) const {
    Tensor hidden = dense(x);
    hidden = dropout(hidden, dropout_);
    return norm(add(hidden, residual));
  }

  double dropout_;
  Activation activation_;
  DebertaAttention attention_;
  Linear output_, first_, second_;
  NormLayer output_norm_, second_norm_;
};

class Deberta final : public EncoderModel {
 public:
  Deberta(Builder& builder, const ModelSettings& settings, const DebertaConfig& cfg)
      : EncoderModel(builder, settings, cfg.task), config_(cfg) {
    {
      const PathScope scope(builder, "embeddings");
      make_tables(builder);
    }
    blocks_.reserve(static_cast<std::size_t>(cfg.layers));
    for (std::int64_t i = 0; i < cfg.layers; ++i) {
      const PathScope block(builder, "encoder.layer", i);
      const BlockScope counted(builder, i, cfg.layers, cfg.hidden);
      blocks_.emplace_back(builder, cfg);
    }
    if (cfg.distances.relative)
      distances_ =
          builder.parameter("encoder.rel_embeddings.weight", {2 * cfg.distances.span, cfg.hidden});
    if (cfg.norms_distances)
      distance_norm_ = make_norm(builder, "encoder.LayerNorm", NormKind::kLayer, cfg.hidden);
    make_head(builder);
  }

 private:
  void make_tables(Builder& builder) {
    words_ = make_words(builder);
    if (config_.position_table)
      positions_ =
          builder.parameter("position_embeddings.weight", {config_.positions, config_.embedding});
    if (config_.token_types > 0)
      types_ = builder.parameter("token_type_embeddings.weight",
                                 {config_.token_types, config_.embedding});
    if (config_.embedding != config_.hidden)
      widening_ =
          make_linear(builder, "embed_proj", config_.embedding, config_.hidden, {.bias = false});
    norm_ = make_norm(builder, "LayerNorm", NormKind::kLayer, config_.hidden);
    position_ids_ = builder.buffer("position_ids", {1, config_.positions}, DType::kInt64, false);
  }

  Tensor make_words(Builder& builder) const {
    const Shape shape{config_.vocabulary, config_.embedding};
    if (config_.task != TaskHead::kVocabulary || !config_.tied)
      return builder.parameter("word_embeddings.weight", shape);
    const HeadScope head(builder);
    return builder.parameter("word_embeddings.weight", shape);
  }

  void make_head(Builder& builder) {
    switch (config_.task) {
      case TaskHead::kHiddenStates: return;
      case TaskHead::kSequenceLabels:
        dense_ = make_linear(builder, "pooler.dense", config_.hidden, config_.hidden);
        [[fallthrough]];
      case TaskHead::kTokenLabels:
      case TaskHead::kAnswerSpan: {
        const HeadScope head(builder);
        output_ = make_linear(builder,
                              config_.task == TaskHead::kAnswerSpan ? "qa_outputs" : "classifier",
                              config_.hidden, config_.outputs, {.head = true});
        return;
      }
      case TaskHead::kVocabulary: break;
    }
    const PathScope scope(builder, "cls.predictions");
    dense_ = make_linear(builder, "transform.dense", config_.hidden, config_.embedding);
    head_norm_ = make_norm(builder, "transform.LayerNorm", NormKind::kLayer, config_.embedding);
    const HeadScope head(builder);
    output_.bias = builder.parameter("bias", {config_.vocabulary});
    output_.weight =
        config_.tied ? words_
                     : builder.parameter("decoder.weight", {config_.vocabulary, config_.embedding});
  }

  Tensor embedded(const Tensor& mask) const {
    const Tensor types = session().empty(ids().shape(), DType::kInt64);
    Tensor words = embedding(words_, ids());
    prepare_embeddings(settings(), words);
    // Where there is no table, zeros are made in its place and nobody reads them.
    const Tensor positions = positions_
                                 ? embedding(positions_, slice(position_ids_, 1, 0, ids().size(1)))
                                 : session().zeros(words.shape(), words.dtype());
    Tensor sum = words;
    if (positions_) sum = add(sum, positions);
    if (types_) sum = add(sum, embedding(types_, types));
    if (widening_.weight) sum = widening_(sum);
    sum = norm_(sum);
    sum = mul(sum, to_dtype(unsqueeze(mask, 2), sum.dtype()));
    return dropout(sum, config_.dropout);
  }

  // build_relative_position: distances, and logarithms of the large ones.
  Tensor relative_positions() const {
    const std::int64_t length = ids().size(1);
    const Shape shape{1, 1, length, length};
    Tensor distances = session().empty(shape, DType::kInt64);
    const Tensor sign = session().empty(shape, DType::kInt64);
    const Tensor size = session().empty(shape, DType::kInt64);
    Tensor logarithm = session().empty(shape, DType::kFp32);
    logarithm = session().empty(shape, DType::kFp32);
    logarithm = session().empty(shape, DType::kFp32);
    return session().empty(shape, DType::kInt64);
  }

  Tensor encoded() override {
    Pass pass;
    const Tensor mask = padding() ? padding() : session().empty(ids().shape(), DType::kFp32);
    std::vector<Tensor> all{embedded(mask)};  // the encoder lists what every block gives
    const std::int64_t length = ids().size(1);
    pass.mask = session().empty({ids().size(0), 1, length, length}, mask.dtype());
    if (config_.distances.relative) {
      pass.positions = relative_positions();
      pass.biases = distance_norm_ ? (*distance_norm_)(distances_) : distances_;
    }
    for (const DebertaBlock& block : blocks_)
      all.push_back(run_block(settings(), block, all.back(), pass));
    return all.back();
  }

  Tensor scored(const Tensor& hidden) const override {
    switch (config_.task) {
      case TaskHead::kHiddenStates: return hidden;
      case TaskHead::kAnswerSpan: return output_(hidden);
      case TaskHead::kTokenLabels: return output_(dropout(hidden, config_.dropout));
      case TaskHead::kSequenceLabels: return classified(hidden);
      case TaskHead::kVocabulary: break;
    }
    Tensor x = dense_(hidden);
    x = activate(config_.activation, x);
    x = head_norm_(x);
    return linear(x, output_.weight, output_.bias);
  }

  Tensor classified(const Tensor& hidden) const {
    Tensor pooled = dropout(select(hidden, 1, 0), config_.pooler_dropout);
    pooled = activate(config_.pooler_activation, dense_(pooled));
    return output_(dropout(pooled, config_.classifier_dropout));
  }

  Tensor own_loss(const Tensor& logits, const TaskLabels& labels) const override {
    if (config_.task == TaskHead::kSequenceLabels) return masked_lm_loss(logits, labels.first);
    return EncoderModel::own_loss(logits, labels);
  }

  DebertaConfig config_;
  Tensor words_, positions_, types_, position_ids_, distances_;
  Linear widening_, dense_, output_;
  NormLayer norm_, head_norm_;
  std::optional<NormLayer> distance_norm_;
  std::vector<DebertaBlock> blocks_;
};

}  // namespace

// DebertaV2ForMaskedLM, or with the head that `architectures` names. The library has no kernel for
// its attention, so `attention` changes nothing.
std::unique_ptr<Network> make_deberta(Builder& builder, const Node& config,
                                      const ModelSettings& settings) {
  return std::make_unique<Deberta>(builder, settings, read_plan(config, settings));
}

}  // namespace memfathom
