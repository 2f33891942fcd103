#include "estimator/models/language/bert.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "estimator/models/language/attention.h"
#include "estimator/models/language/bert_plan.h"
#include "estimator/models/language/language_loss.h"
#include "estimator/models/language/masks.h"
#include "estimator/models/language/norm_layer.h"
#include "estimator/models/language/pass.h"
#include "estimator/models/losses.h"
#include "kernels/layers/batch_scope.h"
#include "kernels/layers/linear.h"
#include "kernels/ops/arithmetic.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/loss.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/views.h"

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
    positions_ = builder.parameter("position_embeddings.weight", {plan.positions, plan.hidden});
    if (plan.token_types > 0)
      types_ = builder.parameter("token_type_embeddings.weight", {plan.token_types, plan.hidden});
    norm_ = make_norm(builder, "LayerNorm", NormKind::kLayer, plan.hidden);
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
    const Shape shape{plan_.vocabulary, plan_.hidden};
    if (plan_.labels > 0 || !plan_.tied) return builder.parameter("weight", shape);
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

// Dense, activation, norm, and the words' own table with a bias.
class MaskedHead {
 public:
  MaskedHead(Builder& builder, const BertPlan& plan, const Tensor& words)
      : activation_(plan.activation) {
    const bool bert = plan.flavor == BertFlavor::kBert;
    const bool distilled = plan.flavor == BertFlavor::kDistilBert;
    const PathScope scope(builder, bert ? "cls.predictions" : distilled ? "head" : "lm_head");
    if (!distilled) bias_ = make_bias(builder, plan);
    dense_ = make_linear(builder,
                         bert        ? "transform.dense"
                         : distilled ? "vocab_transform"
                                     : "dense",
                         plan.hidden, plan.hidden);
    norm_ = make_norm(builder,
                      bert        ? "transform.LayerNorm"
                      : distilled ? "vocab_layer_norm"
                                  : "layer_norm",
                      NormKind::kLayer, plan.hidden);
    const HeadScope head(builder);
    weight_ =
        plan.tied ? words : builder.parameter("decoder.weight", {plan.vocabulary, plan.hidden});
    if (distilled) bias_ = make_bias(builder, plan);
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

// What comes between the last hidden states and the classes: BERT's pooler, or the head's own dense
// layer.
class ClassHead {
 public:
  ClassHead(Builder& builder, const BertPlan& plan) : plan_(plan) {
    const bool roberta = plan.flavor == BertFlavor::kRoberta;
    if (!roberta) {
      const bool bert = plan.flavor == BertFlavor::kBert;
      dense_ =
          make_linear(builder, bert ? "pooler.dense" : "pre_classifier", plan.hidden, plan.hidden);
    }
    const HeadScope head(builder);
    const PathScope scope(builder, roberta ? "classifier" : "");
    if (roberta) dense_ = make_linear(builder, "dense", plan.hidden, plan.hidden);
    classifier_ = make_linear(builder, roberta ? "out_proj" : "classifier", plan.hidden,
                              plan.labels, {.head = true});
  }

  Tensor operator()(const Tensor& hidden) const {
    Tensor pooled = select(hidden, 1, 0);
    if (plan_.flavor == BertFlavor::kRoberta) pooled = dropout(pooled, plan_.classifier_dropout);
    pooled = dense_(pooled);
    pooled = activate(
        plan_.flavor == BertFlavor::kDistilBert ? Activation::kRelu : Activation::kTanh, pooled);
    pooled = dropout(pooled, plan_.classifier_dropout);
    return classifier_(pooled);
  }

 private:
  BertPlan plan_;
  Linear dense_, classifier_;
};

class Bert final : public Network {
 public:
  Bert(Builder& builder, const ModelSettings& settings, const BertPlan& plan)
      : session_(builder.session()), settings_(settings), plan_(plan) {
    require_sequence_length(settings_);
    AttentionStyle style;
    style.implementation = settings.attention;
    style.causal = false;
    style.dropout = plan.attention_dropout;
    const std::int64_t head_size = plan.hidden / plan.heads;
    style.scale = 1 / std::sqrt(static_cast<double>(head_size));
    style.softmax_in_fp32 = false;
    embeddings_.emplace(builder, plan);
    blocks_.reserve(static_cast<std::size_t>(plan.layers));
    for (std::int64_t i = 0; i < plan.layers; ++i) {
      const PathScope block(builder, plan.names.stack, i);
      const BlockScope counted(builder, i, plan.layers, plan.hidden);
      blocks_.emplace_back(builder, plan, style);
    }
    if (plan.labels > 0) {
      class_head_.emplace(builder, plan);
    } else {
      masked_head_.emplace(builder, plan, embeddings_->words());
    }
  }

  void load_batch(std::int64_t size, bool targets) override {
    const BatchScope scope(session_, {&ids_, &labels_, &padding_});
    const Shape shape{size, settings_.sequence_length};
    ids_ = session_.zeros(shape, DType::kInt64);
    if (targets) labels_ = session_.zeros(plan_.labels > 0 ? Shape{size} : shape, DType::kInt64);
    if (settings_.padding_mask) padding_ = session_.zeros(shape, DType::kInt64);
  }

  Tensor loss(Tensor* output) override {
    const Tensor hidden = encoded();
    const ComponentScope scope(session_, Component::kLogitsLoss);
    const Tensor logits = scored(hidden);
    Tensor result;
    if (script_makes_loss(settings_)) {
      result = apply_loss(settings_.loss, logits, labels_, settings_.label_smoothing);
    } else {
      result = token_loss(logits, labels_);
    }
    if (output != nullptr) *output = logits;
    return result;
  }

  bool output_is_named() const override { return script_makes_loss(settings_); }

  Tensor forward() override {
    const Tensor hidden = encoded();
    const ComponentScope scope(session_, Component::kLogitsLoss);
    return scored(hidden);
  }

 private:
  Tensor encoded() {
    const Tensor embedded = (*embeddings_)(ids_, settings_);
    Pass pass;
    MaskCase c;
    c.batch = ids_.size(0);
    c.queries = c.keys = ids_.size(1);
    c.causal = false;
    c.padding = padding_;
    c.eager = settings_.attention == AttentionImplementation::kEager;
    c.dtype = embedded.dtype();
    pass.mask = c.eager && settings_.transformers_version < kMasksPaddingOnly && !padding_
                    ? session_.empty({c.batch, 1, 1, c.keys}, embeddings_->words().dtype())
                    : make_mask(session_, c);
    pass.mask_is_positional = true;
    Tensor hidden = embedded;
    for (const BertBlock& block : blocks_) hidden = run_block(settings_, block, hidden, pass);
    return hidden;
  }

  Tensor scored(const Tensor& hidden) const {
    return class_head_ ? (*class_head_)(hidden) : (*masked_head_)(hidden);
  }

  Session& session_;
  ModelSettings settings_;
  BertPlan plan_;
  std::optional<BertEmbeddings> embeddings_;
  std::vector<BertBlock> blocks_;
  std::optional<MaskedHead> masked_head_;
  std::optional<ClassHead> class_head_;
  Tensor ids_, labels_, padding_;
};

}  // namespace

std::unique_ptr<Network> make_bert(Builder& builder, const Node& config,
                                   const ModelSettings& settings) {
  return std::make_unique<Bert>(builder, settings, read_bert_plan(config, settings));
}

}  // namespace memfathom
