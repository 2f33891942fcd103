#include "estimator/models/families/language/bert.h"

#include <optional>
#include <utility>
#include <vector>

#include "estimator/models/blocks/attention.h"
#include "estimator/models/blocks/bert_plan.h"
#include "estimator/models/blocks/encoder_model.h"
#include "estimator/models/blocks/language_loss.h"
#include "estimator/models/blocks/norm_layer.h"
#include "estimator/models/blocks/pass.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

// Before transformers 4.56 scores were always masked, by a row of the parameters' type: under
// autocast that makes them fp32.
constexpr int kMasksPaddingOnly = 456;

class BertBlock {
 public:
  BertBlock(Builder& builder, const BertPlan& plan, const AttentionStyle& style)
      : head_size_(plan.hidden / plan.heads),
        projection_dropout_(plan.projection_dropout),
        dropout_(plan.dropout),
        activation_(plan.activation),
        style_(style) {
    const BertNames& names = plan.names;
    {
      const PathScope scope(builder, names.attention);
      q_ = make_linear(builder, names.q, plan.hidden, plan.hidden);
      k_ = make_linear(builder, names.k, plan.hidden, plan.hidden);
      v_ = make_linear(builder, names.v, plan.hidden, plan.hidden);
    }
    output_ = make_linear(builder, names.output, plan.hidden, plan.hidden);
    output_norm_ = make_norm(builder, names.output_norm, NormKind::kLayer, plan.hidden);
    first_ = make_linear(builder, names.first, plan.hidden, plan.ffn);
    second_ = make_linear(builder, names.second, plan.ffn, plan.hidden);
    second_norm_ = make_norm(builder, names.second_norm, NormKind::kLayer, plan.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {
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

  // norm(dropout(dense(x)) + residual)
  static Tensor closed(const Linear& dense, const NormLayer& norm, double p, const Tensor& x,
                       const Tensor& residual) {
    Tensor hidden = dense(x);
    hidden = dropout(hidden, p);
    const Tensor sum = add(hidden, residual);
    return norm(sum);
  }

  std::int64_t head_size_;
  double projection_dropout_, dropout_;
  Activation activation_;
  AttentionStyle style_;
  Linear q_, k_, v_, output_, first_, second_;
  NormLayer output_norm_, second_norm_;
};

class BertEmbeddings {
 public:
  BertEmbeddings(Builder& builder, const BertPlan& plan) : plan_(plan) {
    const PathScope scope(builder, "embeddings");
    words_ = make_words(builder);
    positions_ = builder.parameter("position_embeddings.weight", {plan.positions, plan.embedding});
    if (plan.token_types > 0)
      types_ =
          builder.parameter("token_type_embeddings.weight", {plan.token_types, plan.embedding});
    norm_ = make_norm(builder, "LayerNorm", NormKind::kLayer, plan.embedding);
    position_ids_ = builder.buffer("position_ids", {1, plan.positions}, DType::kInt64, false);
    if (plan.token_types > 0)
      type_ids_ = builder.buffer("token_type_ids", {1, plan.positions}, DType::kInt64, false);
  }

  const Tensor& words() const { return words_; }

  Tensor operator()(const Tensor& ids, const ModelSettings& settings) const {
    Session& session = ids.session();
    const Tensor position_ids = plan_.flavor == BertFlavor::kRoberta
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
    return dropout(sum, plan_.dropout);
  }

 private:
  Tensor make_words(Builder& builder) const {
    const PathScope scope(builder, "word_embeddings");
    const Shape shape{plan_.vocabulary, plan_.embedding};
    if (plan_.labels > 0 || plan_.discriminates || !plan_.tied)
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

  BertPlan plan_;
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
    case BertFlavor::kElectra: break;
  }
  return {"", "generator_predictions.dense", "generator_predictions.LayerNorm",
          "generator_lm_head"};
}

// Dense, activation, norm, and the words' own table with a bias.
class MaskedHead {
 public:
  MaskedHead(Builder& builder, const BertPlan& plan, const Tensor& words)
      : activation_(plan.flavor == BertFlavor::kElectra ? Activation::kGelu : plan.activation) {
    const MaskedHeadNames names = masked_head_names(plan.flavor);
    const bool bias_first = plan.flavor == BertFlavor::kBert || plan.flavor == BertFlavor::kRoberta;
    const PathScope scope(builder, names.scope);
    if (bias_first) bias_ = make_bias(builder, plan);
    dense_ = make_linear(builder, names.dense, plan.hidden, plan.embedding);
    norm_ = make_norm(builder, names.norm, NormKind::kLayer, plan.embedding);
    const HeadScope head(builder);
    const PathScope decoder(builder, names.decoder);
    weight_ = plan.tied ? words : builder.parameter("weight", {plan.vocabulary, plan.embedding});
    if (!bias_first) bias_ = make_bias(builder, plan);
  }

  Tensor operator()(const Tensor& x) const {
    Tensor hidden = dense_(x);
    hidden = activate(activation_, hidden);
    hidden = norm_(hidden);
    return linear(hidden, weight_, bias_);
  }

 private:
  static Tensor make_bias(Builder& builder, const BertPlan& plan) {
    const HeadScope head(builder);
    return builder.parameter("bias", {plan.vocabulary});
  }

  Activation activation_;
  Linear dense_;
  NormLayer norm_;
  Tensor weight_, bias_;
};

// ELECTRA's: a number for each token, whether it was replaced.
class DiscriminatingHead {
 public:
  DiscriminatingHead(Builder& builder, const BertPlan& plan) : activation_(plan.activation) {
    const PathScope scope(builder, "discriminator_predictions");
    dense_ = make_linear(builder, "dense", plan.hidden, plan.hidden);
    const HeadScope head(builder);
    prediction_ = make_linear(builder, "dense_prediction", plan.hidden, 1, {.head = true});
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
  ClassHead(Builder& builder, const BertPlan& plan) : plan_(plan), own_(has_own_dense(plan)) {
    if (!own_) {
      const bool bert = plan.flavor == BertFlavor::kBert;
      dense_ =
          make_linear(builder, bert ? "pooler.dense" : "pre_classifier", plan.hidden, plan.hidden);
    }
    const HeadScope head(builder);
    const PathScope scope(builder, own_ ? "classifier" : "");
    if (own_) dense_ = make_linear(builder, "dense", plan.hidden, plan.hidden);
    classifier_ = make_linear(builder, own_ ? "out_proj" : "classifier", plan.hidden, plan.labels,
                              {.head = true});
  }

  Tensor operator()(const Tensor& hidden) const {
    Tensor pooled = select(hidden, 1, 0);
    if (own_) pooled = dropout(pooled, plan_.classifier_dropout);
    pooled = dense_(pooled);
    pooled = activate(activation(), pooled);
    pooled = dropout(pooled, plan_.classifier_dropout);
    return classifier_(pooled);
  }

 private:
  static bool has_own_dense(const BertPlan& plan) {
    return plan.flavor == BertFlavor::kRoberta || plan.flavor == BertFlavor::kElectra;
  }

  Activation activation() const {
    switch (plan_.flavor) {
      case BertFlavor::kDistilBert: return Activation::kRelu;
      case BertFlavor::kElectra: return Activation::kGelu;
      default: return Activation::kTanh;
    }
  }

  BertPlan plan_;
  bool own_;
  Linear dense_, classifier_;
};

class Bert final : public EncoderModel {
 public:
  Bert(Builder& builder, const ModelSettings& settings, const BertPlan& plan)
      : EncoderModel(builder, settings, plan.labels) {
    const AttentionStyle style = attention_style(plan.attention_dropout, plan.hidden / plan.heads);
    embeddings_.emplace(builder, plan);
    if (plan.embedding != plan.hidden)
      widening_ = make_linear(builder, "embeddings_project", plan.embedding, plan.hidden);
    blocks_.reserve(static_cast<std::size_t>(plan.layers));
    for (std::int64_t i = 0; i < plan.layers; ++i) {
      const PathScope block(builder, plan.names.stack, i);
      const BlockScope counted(builder, i, plan.layers, plan.hidden);
      blocks_.emplace_back(builder, plan, style);
    }
    if (plan.labels > 0) {
      class_head_.emplace(builder, plan);
    } else if (plan.discriminates) {
      discriminating_head_.emplace(builder, plan);
    } else {
      masked_head_.emplace(builder, plan, embeddings_->words());
    }
  }

 private:
  Tensor encoded() override {
    Tensor embedded = (*embeddings_)(ids(), settings());
    if (widening_) embedded = (*widening_)(embedded);
    const bool eager = settings().attention == AttentionImplementation::kEager;
    Pass pass;
    pass.mask =
        eager && settings().transformers_version < kMasksPaddingOnly && !padding()
            ? session().empty({ids().size(0), 1, 1, ids().size(1)}, embeddings_->words().dtype())
            : mask_for(embedded.dtype());
    pass.mask_is_positional = true;
    Tensor hidden = embedded;
    for (const BertBlock& block : blocks_) hidden = run_block(settings(), block, hidden, pass);
    return hidden;
  }

  Tensor scored(const Tensor& hidden) const override {
    if (discriminating_head_) return (*discriminating_head_)(hidden);
    return class_head_ ? (*class_head_)(hidden) : (*masked_head_)(hidden);
  }

  Tensor own_loss(const Tensor& logits, const Tensor& labels) const override {
    if (!discriminating_head_) return token_loss(logits, labels);
    const Tensor replaced = session().empty(labels.shape(), DType::kFp32);
    return pair_loss(PairLoss::kBceWithLogits, logits, replaced);
  }

  std::optional<BertEmbeddings> embeddings_;
  std::vector<BertBlock> blocks_;
  std::optional<MaskedHead> masked_head_;
  std::optional<ClassHead> class_head_;
  std::optional<DiscriminatingHead> discriminating_head_;
  std::optional<Linear> widening_;  // from the tables' width to the blocks'
};

}  // namespace

std::unique_ptr<Network> make_bert(Builder& builder, const Node& config,
                                   const ModelSettings& settings) {
  return std::make_unique<Bert>(builder, settings, read_bert_plan(config, settings));
}

}  // namespace memfathom
