#include "estimator/models/blocks/encoder_model.h"

#include <cmath>

#include "estimator/models/blocks/language_loss.h"
#include "estimator/models/blocks/losses.h"
#include "estimator/models/blocks/masks.h"
#include "estimator/models/blocks/pass.h"
#include "kernels/framework/layers/batch_scope.h"

namespace memfathom {

EncoderModel::EncoderModel(Builder& builder, const ModelSettings& settings, TaskHead task)
    : session_(builder.session()), settings_(settings), task_(task) {
  require_sequence_length(settings_);
}

void EncoderModel::load_batch(std::int64_t size, bool targets) {
  const BatchScope scope(session_, {&ids_, &labels_.first, &labels_.second, &padding_});
  const Shape shape{size, settings_.sequence_length};
  ids_ = session_.zeros(shape, DType::kInt64);
  if (targets) labels_.load(session_, task_, shape);
  if (settings_.padding_mask) padding_ = session_.zeros(shape, DType::kInt64);
}

Tensor EncoderModel::loss(Tensor* output) {
  const Tensor hidden = encoded();
  const ComponentScope scope(session_, Component::kLogitsLoss);
  const Tensor logits = scored(hidden);
  const bool smooths = trainer_smooths_labels(settings_) && task_ != TaskHead::kAnswerSpan;
  Tensor result = loss_is_in_script(settings_)
                      ? apply_loss(settings_.loss, logits, labels_.first, settings_.label_smoothing)
                  : smooths ? smoothed_loss(logits, labels_.first, false)
                            : own_loss(logits, labels_);
  if (output != nullptr) *output = logits;
  return result;
}

Tensor EncoderModel::own_loss(const Tensor& logits, const TaskLabels& labels) const {
  return task_loss(task_, logits, labels, false);
}

Tensor EncoderModel::forward() {
  const Tensor hidden = encoded();
  const ComponentScope scope(session_, Component::kLogitsLoss);
  return scored(hidden);
}

Tensor EncoderModel::mask_for(DType dtype, std::int64_t window) const {
  MaskCase c;
  c.batch = ids_.size(0);
  c.queries = c.keys = ids_.size(1);
  c.causal = false;
  c.padding = padding_;
  c.window = window;
  c.eager = settings_.attention == AttentionImplementation::kEager;
  c.dtype = dtype;
  return make_mask(session_, c);
}

AttentionStyle EncoderModel::attention_style(double dropout, std::int64_t head_size) const {
  AttentionStyle style;
  style.implementation = settings_.attention;
  style.causal = false;
  style.dropout = dropout;
  style.scale = 1 / std::sqrt(static_cast<double>(head_size));
  style.softmax_in_fp32 = false;
  return style;
}

}  // namespace memfathom
