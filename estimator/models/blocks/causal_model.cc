#include "estimator/models/blocks/causal_model.h"

#include <cmath>

#include "core/error.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/language_loss.h"
#include "estimator/models/blocks/losses.h"
#include "estimator/models/blocks/masks.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {

void require_sequence_length(const ModelSettings& settings) {
  if (settings.sequence_length > 0) return;
  throw Error(ErrorKind::kInput,
              "training.sequence_length is missing: this model needs the number of tokens per "
              "sample, for example --sequence-length 2048");
}

CausalModel::CausalModel(Builder& builder, const ModelSettings& settings, std::int64_t layers)
    : session_(builder.session()), settings_(settings), layers_(layers) {
  require_sequence_length(settings_);
}

void CausalModel::load_batch(std::int64_t size, bool targets) {
  const BatchScope scope(session_, {&ids_, &labels_.first, &labels_.second, &padding_});
  const Shape shape{size, settings_.sequence_length};
  ids_ = session_.zeros(shape, DType::kInt64);
  if (settings_.padding_mask) padding_ = session_.zeros(shape, DType::kInt64);
  if (targets) labels_.load(session_, task_, shape);
  load_extra_inputs(size);
}

bool CausalModel::set_length(std::int64_t length) {
  settings_.sequence_length = length;
  return true;
}

Tensor CausalModel::make_embedding(Builder& builder, const char* name, const Node& config,
                                   std::int64_t vocabulary, std::int64_t width,
                                   bool tied_by_default) {
  const PathScope scope(builder, name);
  // The last pipeline stage gets hidden states instead; its table only stands for them.
  if (settings_.stage == PipelineStage::kLast)
    return session_.deferred({vocabulary, width}, builder.options().dtype);
  if (task_head(config, settings_) != TaskHead::kVocabulary ||
      !flag_or(config, {"tie_word_embeddings"}, tied_by_default))
    return builder.parameter("weight", {vocabulary, width});
  const HeadScope head(builder);
  return builder.parameter("weight", {vocabulary, width});
}

void CausalModel::make_head(Builder& builder, const Node& config, const Tensor& embedding,
                            std::int64_t hidden, std::int64_t vocabulary, bool tied_by_default,
                            bool bias) {
  if (settings_.stage == PipelineStage::kFirst) return;
  const HeadScope scope(builder);
  task_ = task_head(config, settings_);
  if (task_ != TaskHead::kVocabulary) return make_task_head(builder, config, hidden);
  if (flag_or(config, {"tie_word_embeddings"}, tied_by_default) &&
      settings_.stage == PipelineStage::kWhole) {
    head_.weight = embedding;
    if (bias) head_.bias = builder.parameter("lm_head.bias", {vocabulary});
    return;
  }
  head_ = make_linear(builder, "lm_head", hidden, vocabulary, {.bias = bias, .head = true});
}

// As transformers' generic classes have it: the scores of a sample have no bias.
void CausalModel::make_task_head(Builder& builder, const Node& config, std::int64_t hidden) {
  if (task_ == TaskHead::kHiddenStates) return;
  const bool spans = task_ == TaskHead::kAnswerSpan;
  if (task_ == TaskHead::kTokenLabels)
    task_dropout_ =
        dropout_or(probability_or(config, {"classifier_dropout", "hidden_dropout"}, 0.1));
  head_ = make_linear(builder, spans ? "qa_outputs" : "score", hidden, head_outputs(config, task_),
                      {.bias = task_ != TaskHead::kSequenceLabels, .head = true});
}

Tensor CausalModel::task_scores(const Tensor& hidden) const {
  if (task_ == TaskHead::kHiddenStates) return hidden;
  const Tensor scores = head_(dropout(hidden, task_dropout_));
  // A sample's labels are those of its last token.
  return task_ == TaskHead::kSequenceLabels ? select(scores, 1, scores.size(1) - 1) : scores;
}

Tensor CausalModel::mask_for(const Tensor& embeddings, KeyValueCache* cache,
                             std::int64_t window) const {
  MaskCase c;
  c.batch = embeddings.size(0);
  c.queries = embeddings.size(1);
  c.keys = cache != nullptr ? cache->key_length(c.queries, window) : c.queries;
  c.cached = cache != nullptr;
  c.padding = padding_;
  c.window = window;
  c.forced = always_masks() || (cache != nullptr && cache->needs_mask(c.queries));
  c.positions = !always_masks();
  c.eager = settings_.attention == AttentionImplementation::kEager;
  c.dtype = embeddings.dtype();
  return make_mask(session_, c);
}

Tensor CausalModel::positions_for(const Tensor& embeddings, const KeyValueCache* cache) const {
  const bool generates = cache != nullptr && cache == cache_.get();
  if (!generates) return make_positions(session_, embeddings.size(1));
  return session_.empty({embeddings.size(0), embeddings.size(1)}, DType::kInt64);
}

Pass CausalModel::begin_pass(const Tensor& embeddings, KeyValueCache* cache,
                             std::int64_t window) const {
  Pass pass;
  pass.positions = positions_for(embeddings, cache);
  pass.cache = cache;
  pass.mask = mask_for(embeddings, cache, window);
  return pass;
}

AttentionStyle CausalModel::attention_style(double dropout, std::int64_t head_size) const {
  AttentionStyle style;
  style.implementation = settings_.attention;
  style.dropout = dropout_or(dropout);
  style.scale = 1 / std::sqrt(static_cast<double>(head_size));
  return style;
}

std::unique_ptr<KeyValueCache> CausalModel::new_cache() const {
  return std::make_unique<KeyValueCache>(settings_.kv_cache, layers_,
                                         settings_.sequence_length + settings_.new_tokens);
}

Tensor CausalModel::logits_of(const Tensor& hidden, std::int64_t keep) {
  const ComponentScope scope(session_, Component::kLogitsLoss);
  if (task_ != TaskHead::kVocabulary) return task_scores(hidden);
  const bool some = keep > 0 && keep < hidden.size(1);
  return head(some ? slice(hidden, 1, hidden.size(1) - keep, hidden.size(1)) : hidden);
}

bool CausalModel::widens_logits() const {
  return task_ == TaskHead::kVocabulary && widened_logits() &&
         settings_.transformers.upcasts_logits();
}

Tensor CausalModel::loss(Tensor* output) {
  std::unique_ptr<KeyValueCache> cache;
  if (settings_.use_cache && !checkpoints(settings_, session_)) cache = new_cache();
  const Tensor hidden = body(ids_, cache.get());
  const ComponentScope scope(session_, Component::kLogitsLoss);
  if (settings_.stage == PipelineStage::kFirst)
    return apply_loss(LossKind::kSink, hidden, {}, 0);  // sent on
  const bool smooths = trainer_smooths_labels(settings_);
  if (settings_.fused_loss && head_.weight && task_ == TaskHead::kVocabulary && !smooths)
    return fused_causal_loss(hidden, head_.weight, labels_.first);
  Tensor logits = logits_of(hidden, 0);
  if (widens_logits()) logits = to_dtype(logits, DType::kFp32);
  Tensor result = loss_of(logits);
  if (output != nullptr) {
    *output = logits;
    held_cache_ = std::move(cache);
  }
  return result;
}

Tensor CausalModel::loss_of(const Tensor& logits) {
  if (loss_is_in_script(settings_))
    return apply_loss(settings_.loss, logits, labels_.first, settings_.label_smoothing);
  if (trainer_smooths_labels(settings_) && task_ != TaskHead::kAnswerSpan)
    return smoothed_loss(logits, labels_.first, task_ == TaskHead::kVocabulary);
  if (task_ != TaskHead::kVocabulary) return task_loss(task_, logits, labels_, true);
  const CausalLoss form{settings_.transformers.loss_shifts_logits(), widened_logits()};
  return causal_lm_loss(logits, labels_.first, form);
}

Tensor CausalModel::forward() {
  std::unique_ptr<KeyValueCache> cache;
  if (settings_.use_cache) cache = new_cache();
  const Tensor hidden = body(ids_, cache.get());
  Tensor logits = logits_of(hidden, settings_.logits_to_keep);
  if (widens_logits()) {
    const ComponentScope scope(session_, Component::kLogitsLoss);
    logits = to_dtype(logits, DType::kFp32);
  }
  held_cache_ = std::move(cache);
  return logits;
}

Tensor CausalModel::next_token(const Tensor& ids) {
  const Tensor hidden = body(ids, cache_.get());
  cache_->advance(ids.size(1));
  const bool all = settings_.transformers.generates_all_logits();
  Tensor logits = logits_of(hidden, all ? 0 : 1);
  if (widens_logits()) logits = to_dtype(logits, DType::kFp32);
  const ComponentScope scope(session_, Component::kInputs);
  token_ = session_.zeros({ids.size(0), 1}, DType::kInt64);
  return logits;
}

Tensor CausalModel::prefill() {
  if (task_ != TaskHead::kVocabulary) {
    throw Error(ErrorKind::kInput,
                "config.json: architectures names a model without a head over the vocabulary, "
                "which generates nothing; name its ...ForCausalLM, or use mode: inference");
  }
  cache_ = new_cache();
  return next_token(ids_);
}

Tensor CausalModel::decode() {
  const Tensor ids = token_;
  return next_token(ids);
}

bool CausalModel::skip_tokens(std::int64_t tokens) {
  cache_->skip(tokens);
  return true;
}

void CausalModel::end_generation() {
  held_cache_.reset();
  cache_.reset();
  token_.reset();
}

}  // namespace memfathom
