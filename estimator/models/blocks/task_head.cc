#include "estimator/models/blocks/task_head.h"

#include <string>

#include "estimator/models/blocks/image_config.h"
#include "estimator/models/blocks/language_loss.h"
#include "estimator/models/blocks/losses.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {
namespace {

// The first of `architectures`, if it is a name.
std::string_view architecture(const Node& config) {
  const Node* named = config.find("architectures");
  if (named == nullptr || !named->is_list() || named->items().empty()) return "";
  const Node& first = named->items().front();
  return first.is_string() ? std::string_view(first.as_string()) : "";
}

// Start and end of each answer are looked for among all positions.
Tensor span_loss(const Tensor& scores, const TaskLabels& labels) {
  const Tensor starts = contiguous(select(scores, 2, 0));
  const Tensor ends = contiguous(select(scores, 2, 1));
  const Tensor both = add(token_loss(starts, labels.first), token_loss(ends, labels.second));
  return div_scalar(both, 2);
}

}  // namespace

std::optional<TaskHead> named_head(const Node& config) {
  const std::string_view name = architecture(config);
  if (name.empty()) return TaskHead::kVocabulary;
  if (name.ends_with("ForSequenceClassification")) return TaskHead::kSequenceLabels;
  if (name.ends_with("ForTokenClassification")) return TaskHead::kTokenLabels;
  if (name.ends_with("ForQuestionAnswering")) return TaskHead::kAnswerSpan;
  // ELECTRA's, T5's and the classes with a head over the vocabulary have code of their own.
  for (const std::string_view ending :
       {"ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForConditionalGeneration",
        "ElectraForPreTraining", "EncoderModel", "MarianMTModel"}) {
    if (name.ends_with(ending)) return TaskHead::kVocabulary;
  }
  if (name.ends_with("DoubleHeadsModel")) return std::nullopt;
  if (name.ends_with("Model")) return TaskHead::kHiddenStates;
  return std::nullopt;
}

TaskHead task_head(const Node& config, const ModelSettings& settings) {
  const TaskHead named = named_head(config).value_or(TaskHead::kVocabulary);
  const bool is_body = named == TaskHead::kHiddenStates;
  return is_body && !settings.runs_body_alone ? TaskHead::kVocabulary : named;
}

std::int64_t head_outputs(const Node& config, TaskHead task) {
  return task == TaskHead::kAnswerSpan ? 2 : label_count(config, 2);
}

void TaskLabels::load(Session& session, TaskHead task, const Shape& ids) {
  switch (task) {
    case TaskHead::kSequenceLabels: first = session.zeros({ids[0]}, DType::kInt64); break;
    case TaskHead::kAnswerSpan:
      first = session.zeros({ids[0]}, DType::kInt64);
      second = session.zeros({ids[0]}, DType::kInt64);
      break;
    case TaskHead::kHiddenStates: break;
    case TaskHead::kVocabulary:
    case TaskHead::kTokenLabels: first = session.zeros(ids, DType::kInt64); break;
  }
}

Tensor task_loss(TaskHead task, const Tensor& scores, const TaskLabels& labels, bool in_fp32) {
  switch (task) {
    case TaskHead::kAnswerSpan: return span_loss(scores, labels);
    case TaskHead::kHiddenStates: return apply_loss(LossKind::kMean, scores, {}, 0);
    case TaskHead::kTokenLabels:
      return in_fp32 ? masked_lm_loss(scores, labels.first) : token_loss(scores, labels.first);
    case TaskHead::kSequenceLabels:
    case TaskHead::kVocabulary: break;
  }
  return token_loss(scores, labels.first);
}

}  // namespace memfathom
