// BERT, RoBERTa, DistilBERT, ELECTRA and ALBERT: encoders with a head for masked words or for
// classes of sequences.
#include <optional>
#include <utility>
#include <vector>

#include "estimator/models/blocks/attention.h"
#include "estimator/models/blocks/bert_config.h"
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

class BertBlock {
 public:
  BertBlock(Builder& builder, const BertConfig& cfg, const AttentionStyle& style)
      : flavor_(cfg.flavor),
        head_size_(cfg.hidden / cfg.heads),
        projection_dropout_(cfg.projection_dropout),
        dropout_(cfg.output_dropout),
        activation_(cfg.activation),
        style_(style) {
    const BertNames& names = cfg.names;
    {
      const PathScope scope(builder, names.attention);
      q_ = make_linear(builder, names.q, cfg.hidden, cfg.hidden);
      k_ = make_linear(builder, names.k, cfg.hidden, cfg.hidden);
      v_ = make_linear(builder, names.v, cfg.hidden, cfg.hidden);
    }
    output_ = make_linear(builder, names.output, cfg.hidden, cfg.hidden);
    output_norm_ = make_norm(builder, names.output_norm, NormKind::kLayer, cfg.hidden);
    first_ = make_linear(builder, names.first, cfg.hidden, cfg.ffn);
    second_ = make_linear(builder, names.second, cfg.ffn, cfg.hidden);
    second_norm_ = make_norm(builder, names.second_norm, NormKind::kLayer, cfg.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    if (flavor_ == BertFlavor::kDistilBert || flavor_ == BertFlavor::kAlbert)
      return in_whole_parts(x, pass.mask);
    Attended attended = attention(x, pass.mask);
    attended.output = closed(output_, output_norm_, projection_dropout_, attended.output, x);
    Tensor wide = first_(attended.output);
    wide = activate(activation_, wide);
    return closed(second_, second_norm_, dropout_, wide, attended.output);
  }

 private:
  Attended attention(const Tensor& x, const Tensor& mask) const {
    const Tensor q = split_heads(q_(x), head_size_);
    const Tensor k = split_heads(k_(x), head_size_);
    const Tensor v = split_heads(v_(x), head_size_);
    Attended attended = attend(style_, q, k, v, mask);
    attended.output = merge_heads(attended.output);
    return attended;
  }

  // DistilBERT and ALBERT: the attention projects its own output, with q, k and v still alive, and
  // the feed-forward part has freed its activations when its output is added.
  Tensor in_whole_parts(const Tensor& x, const Tensor& mask) const {
    Tensor weights;
    Tensor attended = projected_attention(x, mask, weights);
    if (flavor_ == BertFlavor::kDistilBert) attended = summed(output_norm_, attended, x);
    Tensor fed = first_(attended);
    fed = activate(activation_, fed);
    fed = second_(fed);
    fed = dropout(fed, dropout_);
    return summed(second_norm_, fed, attended);
  }

  Tensor projected_attention(const Tensor& x, const Tensor& mask, Tensor& weights) const {
    const Tensor q = split_heads(q_(x), head_size_);
    const Tensor k = split_heads(k_(x), head_size_);
    const Tensor v = split_heads(v_(x), head_size_);
    Attended attended = attend(style_, q, k, v, mask);
    weights = attended.weights;
    Tensor hidden = merge_heads(attended.output);
    attended.output.reset();
    hidden = output_(hidden);
    hidden = dropout(hidden, projection_dropout_);
    return flavor_ == BertFlavor::kAlbert ? summed(output_norm_, hidden, x) : hidden;
  }

  static Tensor summed(const NormLayer& norm, const Tensor& x, const Tensor& residual) {
    const Tensor sum = add(x, residual);
    return norm(sum);
  }

  // norm(dropout(dense(x)) + residual)
  static Tensor closed(const Linear& dense, const NormLayer& norm, double p, const Tensor& x,
                       const Tensor& residual) {
    Tensor hidden = dense(x);
    hidden = dropout(hidden, p);
    return summed(norm, hidden, residual);
  }

  BertFlavor flavor_;
  std::int64_t head_size_;
  double projection_dropout_, dropout_;
  Activation activation_;
  AttentionStyle style_;
  Linear q_, k_, v_, output_, first_, second_;
  NormLayer output_norm_, second_norm_;
};

class BertEmbeddings {
 public:
  BertEmbeddings(Builder& builder, const BertConfig& cfg) : config_(cfg) {
    const PathScope scope(builder, "embeddings");
    words_ = make_words(builder);
    positions_ = builder.parameter("position_embeddings.weight", {cfg.positions, cfg.embedding});
    if (cfg.token_types > 0)
      types_ = builder.parameter("token_type_embeddings.weight", {cfg.token_types, cfg.embedding});
    norm_ = make_norm(builder, "LayerNorm", NormKind::kLayer, cfg.embedding);
    position_ids_ = builder.buffer("position_ids", {1, cfg.positions}, DType::kInt64, false);
    if (cfg.token_types > 0)
      type_ids_ = builder.buffer("token_type_ids", {1, cfg.positions}, DType::kInt64, false);
  }

  const Tensor& words() const { return words_; }

  Tensor operator()(const Tensor& ids, const ModelSettings& settings) const {
    Session& session = ids.session();
    const Tensor position_ids = config_.flavor == BertFlavor::kRoberta
                                    ? counted_positions(ids)
                                    : slice(position_ids_, 1, 0, ids.size(1));
    Tensor type_ids;
    if (types_) type_ids = expand(session.empty(position_ids.shape(), DType::kInt64), ids.shape());
    Tensor words = embedding(words_, ids);
    prepare_embeddings(settings, words);
    Tensor types;
    Tensor sum = words;
    if (types_) {
      types = embedding(types_, type_ids);
      sum = add(words, types);
    }
    const Tensor positions = embedding(positions_, position_ids);
    sum = add(sum, positions);
    sum = norm_(sum);
    return dropout(sum, config_.dropout);
  }

 private:
  Tensor make_words(Builder& builder) const {
    const PathScope scope(builder, "word_embeddings");
    const Shape shape{config_.vocabulary, config_.embedding};
    if (config_.task != TaskHead::kVocabulary || config_.discriminates || !config_.tied)
      return builder.parameter("weight", shape);
    const HeadScope head(builder);
    return builder.parameter("weight", shape);
  }

  // RoBERTa counts the tokens that are no padding: ids.ne(pad).int(), cumsum, times itself, long,
  // plus the offset.
  static Tensor counted_positions(const Tensor& ids) {
    Session& session = ids.session();
    Tensor mask = session.empty(ids.shape(), DType::kBool);
    mask = session.empty(ids.shape(), DType::kInt32);
    Tensor counted = session.empty(ids.shape(), DType::kInt64);
    counted = session.empty(ids.shape(), DType::kInt32);
    counted = session.empty(ids.shape(), DType::kInt32);
    counted = session.empty(ids.shape(), DType::kInt64);
    return session.empty(ids.shape(), DType::kInt64);
  }

  BertConfig config_;
  Tensor words_, positions_, types_, position_ids_, type_ids_;
  NormLayer norm_;
};

struct MaskedHeadNames {
  const char *scope, *dense, *norm, *decoder;
};

MaskedHeadNames masked_head_names(BertFlavor flavor) {
  switch (flavor) {
    case BertFlavor::kBert:
      return {"cls.predictions", "transform.dense", "transform.LayerNorm", "decoder"};
    case BertFlavor::kRoberta: return {"lm_head", "dense", "layer_norm", "decoder"};
    case BertFlavor::kDistilBert: return {"head", "vocab_transform", "vocab_layer_norm", "decoder"};
    case BertFlavor::kAlbert: return {"predictions", "dense", "LayerNorm", "decoder"};
    case BertFlavor::kElectra: break;
  }
  return {"", "generator_predictions.dense", "generator_predictions.LayerNorm",
          "generator_lm_head"};
}

// Dense, activation, norm, and the words' own table with a bias.
class MaskedHead {
 public:
  MaskedHead(Builder& builder, const BertConfig& cfg, const Tensor& words)
      : activation_(cfg.flavor == BertFlavor::kElectra ? Activation::kGelu : cfg.activation) {
    const MaskedHeadNames names = masked_head_names(cfg.flavor);
    const bool bias_first = cfg.flavor == BertFlavor::kBert || cfg.flavor == BertFlavor::kRoberta;
    const PathScope scope(builder, names.scope);
    if (bias_first) bias_ = make_bias(builder, cfg);
    dense_ = make_linear(builder, names.dense, cfg.hidden, cfg.embedding);
    norm_ = make_norm(builder, names.norm, NormKind::kLayer, cfg.embedding);
    const HeadScope head(builder);
    const PathScope decoder(builder, names.decoder);
    weight_ = cfg.tied ? words : builder.parameter("weight", {cfg.vocabulary, cfg.embedding});
    if (!bias_first) bias_ = make_bias(builder, cfg);
  }

  Tensor operator()(const Tensor& x) const {
    Tensor hidden = dense_(x);
    hidden = activate(activation_, hidden);
    hidden = norm_(hidden);
    return linear(hidden, weight_, bias_);
  }

 private:
  static Tensor make_bias(Builder& builder, const BertConfig& cfg) {
    const HeadScope head(builder);
    return builder.parameter("bias", {cfg.vocabulary});
  }

  Activation activation_;
  Linear dense_;
  NormLayer norm_;
  Tensor weight_, bias_;
};

// ELECTRA's: a number for each token, whether it was replaced.
class DiscriminatingHead {
 public:
  DiscriminatingHead(Builder& builder, const BertConfig& cfg) : activation_(cfg.activation) {
    const PathScope scope(builder, "discriminator_predictions");
    dense_ = make_linear(builder, "dense", cfg.hidden, cfg.hidden);
    const HeadScope head(builder);
    prediction_ = make_linear(builder, "dense_prediction", cfg.hidden, 1, {.head = true});
  }

  Tensor operator()(const Tensor& x) const {
    Tensor hidden = dense_(x);
    hidden = activate(activation_, hidden);
    return select(prediction_(hidden), 2, 0);
  }

 private:
  Activation activation_;
  Linear dense_, prediction_;
};

// What comes between the last hidden states and the classes: BERT's pooler, or the head's own dense
// layer.
class ClassHead {
 public:
  ClassHead(Builder& builder, const BertConfig& cfg) : config_(cfg), own_(has_own_dense(cfg)) {
    if (!own_) {
      const char* const name = cfg.flavor == BertFlavor::kDistilBert ? "pre_classifier"
                               : cfg.flavor == BertFlavor::kAlbert   ? "pooler"
                                                                     : "pooler.dense";
      dense_ = make_linear(builder, name, cfg.hidden, cfg.hidden);
    }
    const HeadScope head(builder);
    const PathScope scope(builder, own_ ? "classifier" : "");
    if (own_) dense_ = make_linear(builder, "dense", cfg.hidden, cfg.hidden);
    classifier_ = make_linear(builder, own_ ? "out_proj" : "classifier", cfg.hidden, cfg.outputs,
                              {.head = true});
  }

  Tensor operator()(const Tensor& hidden) const {
    Tensor pooled = select(hidden, 1, 0);
    if (own_) pooled = dropout(pooled, config_.classifier_dropout);
    pooled = dense_(pooled);
    pooled = activate(activation(), pooled);
    pooled = dropout(pooled, config_.classifier_dropout);
    return classifier_(pooled);
  }

 private:
  static bool has_own_dense(const BertConfig& cfg) {
    return cfg.flavor == BertFlavor::kRoberta || cfg.flavor == BertFlavor::kElectra;
  }

  Activation activation() const {
    switch (config_.flavor) {
      case BertFlavor::kDistilBert: return Activation::kRelu;
      case BertFlavor::kElectra: return Activation::kGelu;
      case BertFlavor::kBert:
      case BertFlavor::kAlbert:
      case BertFlavor::kRoberta: break;
    }
    return Activation::kTanh;
  }

  BertConfig config_;
  bool own_;
  Linear dense_, classifier_;
};

// Labels of each token, or where an answer begins and ends.
class TokenHead {
 public:
  TokenHead(Builder& builder, const BertConfig& cfg) {
    const bool spans = cfg.task == TaskHead::kAnswerSpan;
    const bool distilled = cfg.flavor == BertFlavor::kDistilBert;
    // DistilBERT drops in front of answers as well, and of labels as much as anywhere.
    dropout_ = spans && !distilled ? 0 : distilled ? cfg.dropout : cfg.classifier_dropout;
    const HeadScope head(builder);
    output_ = make_linear(builder, spans ? "qa_outputs" : "classifier", cfg.hidden, cfg.outputs,
                          {.head = true});
  }

  Tensor operator()(const Tensor& hidden) const { return output_(dropout(hidden, dropout_)); }

 private:
  double dropout_ = 0;
  Linear output_;
};

// BERT's, ALBERT's and RoBERTa's: made with a model that has no head, and run with it.
class Pooler {
 public:
  Pooler(Builder& builder, const BertConfig& cfg)
      : dense_(make_linear(builder, cfg.flavor == BertFlavor::kAlbert ? "pooler" : "pooler.dense",
                           cfg.hidden, cfg.hidden)) {}

  static bool is_in(const BertConfig& cfg) {
    return cfg.flavor != BertFlavor::kDistilBert && cfg.flavor != BertFlavor::kElectra;
  }

  Tensor operator()(const Tensor& hidden) const {
    return activate(Activation::kTanh, dense_(select(hidden, 1, 0)));
  }

 private:
  Linear dense_;
};

class Bert final : public EncoderModel {
 public:
  Bert(Builder& builder, const ModelSettings& settings, const BertConfig& cfg)
      : EncoderModel(builder, settings, cfg.task) {
    const AttentionStyle style = attention_style(cfg.attention_dropout, cfg.hidden / cfg.heads);
    embeddings_.emplace(builder, cfg);
    if (cfg.flavor == BertFlavor::kAlbert) {
      make_groups(builder, cfg, style);
    } else {
      if (cfg.embedding != cfg.hidden)
        widening_ = make_linear(builder, "embeddings_project", cfg.embedding, cfg.hidden);
      blocks_.reserve(static_cast<std::size_t>(cfg.layers));
      for (std::int64_t i = 0; i < cfg.layers; ++i) {
        const PathScope block(builder, cfg.names.stack, i);
        const BlockScope counted(builder, i, cfg.layers, cfg.hidden);
        blocks_.emplace_back(builder, cfg, style);
        order_.push_back(static_cast<std::size_t>(i));
      }
    }
    make_head(builder, cfg);
  }

 private:
  void make_head(Builder& builder, const BertConfig& cfg) {
    switch (cfg.task) {
      case TaskHead::kSequenceLabels: class_head_.emplace(builder, cfg); return;
      case TaskHead::kTokenLabels:
      case TaskHead::kAnswerSpan: token_head_.emplace(builder, cfg); return;
      case TaskHead::kHiddenStates:
        if (Pooler::is_in(cfg)) pooler_.emplace(builder, cfg);
        has_head_ = false;
        return;
      case TaskHead::kVocabulary: break;
    }
    if (cfg.discriminates) {
      discriminating_head_.emplace(builder, cfg);
    } else {
      masked_head_.emplace(builder, cfg, embeddings_->words());
    }
  }

  // ALBERT: a block for several layers, which are spread evenly over the groups.
  void make_groups(Builder& builder, const BertConfig& cfg, const AttentionStyle& style) {
    refuse_checkpoints(settings(), "ALBERT");
    widening_ =
        make_linear(builder, "encoder.embedding_hidden_mapping_in", cfg.embedding, cfg.hidden);
    blocks_.reserve(static_cast<std::size_t>(cfg.groups * cfg.group_blocks));
    for (std::int64_t group = 0; group < cfg.groups; ++group) {
      const PathScope outer(builder, cfg.names.stack, group);
      for (std::int64_t i = 0; i < cfg.group_blocks; ++i) {
        const PathScope inner(builder, "albert_layers", i);
        const BlockScope counted(builder, group * cfg.group_blocks + i,
                                 cfg.groups * cfg.group_blocks);
        blocks_.emplace_back(builder, cfg, style);
      }
    }
    for (std::int64_t layer = 0; layer < cfg.layers; ++layer) {
      const std::int64_t group = layer * cfg.groups / cfg.layers;
      for (std::int64_t i = 0; i < cfg.group_blocks; ++i)
        order_.push_back(static_cast<std::size_t>(group * cfg.group_blocks + i));
    }
  }

  Tensor encoded() override {
    Tensor embedded = (*embeddings_)(ids(), settings());
    if (widening_) embedded = (*widening_)(embedded);
    const bool eager = settings().attention == AttentionImplementation::kEager;
    Pass pass;
    pass.mask =
        eager && settings().transformers.encoders_always_mask() && !padding()
            ? session().empty({ids().size(0), 1, 1, ids().size(1)}, embeddings_->words().dtype())
            : mask_for(embedded.dtype());
    pass.mask_is_positional = true;
    Tensor hidden = embedded;
    for (const std::size_t i : order_) hidden = run_block(settings(), blocks_[i], hidden, pass);
    return hidden;
  }

  Tensor scored(const Tensor& hidden) const override {
    if (pooler_) (*pooler_)(hidden);
    if (!has_head_) return hidden;
    if (discriminating_head_) return (*discriminating_head_)(hidden);
    if (token_head_) return (*token_head_)(hidden);
    return class_head_ ? (*class_head_)(hidden) : (*masked_head_)(hidden);
  }

  Tensor own_loss(const Tensor& logits, const TaskLabels& labels) const override {
    if (!discriminating_head_) return EncoderModel::own_loss(logits, labels);
    const Tensor replaced = session().empty(labels.first.shape(), DType::kFp32);
    return pair_loss(PairLoss::kBceWithLogits, logits, replaced);
  }

  std::optional<BertEmbeddings> embeddings_;
  std::vector<BertBlock> blocks_;
  std::vector<std::size_t> order_;  // in which they run
  std::optional<MaskedHead> masked_head_;
  std::optional<ClassHead> class_head_;
  std::optional<TokenHead> token_head_;
  std::optional<Pooler> pooler_;
  bool has_head_ = true;
  std::optional<DiscriminatingHead> discriminating_head_;
  std::optional<Linear> widening_;  // from the tables' width to the blocks'
};

}  // namespace

// The head is the one that "architectures" names (task_head.h).
std::unique_ptr<Network> make_bert(Builder& builder, const Node& config,
                                   const ModelSettings& settings) {
  return std::make_unique<Bert>(builder, settings, read_bert_config(config, settings));
}

}  // namespace memfathom
