// TaskHead: what follows the body of a text model, as `architectures` of its configuration names
// it.
#pragma once

#include <cstdint>
#include <optional>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

enum class TaskHead : std::uint8_t {
  kVocabulary,      // ...ForCausalLM, ...ForMaskedLM; also where nothing is named
  kSequenceLabels,  // ...ForSequenceClassification: labels of a whole sample
  kTokenLabels,     // ...ForTokenClassification
  kAnswerSpan,      // ...ForQuestionAnswering: where an answer begins and ends
  kHiddenStates,    // ...Model: no head
};

// Nothing if the name is that of another head.
std::optional<TaskHead> named_head(const Node& config);

// The head that is built. Checkpoints without one are mostly published so to be trained with one:
// in training it is the one over the vocabulary.
TaskHead task_head(const Node& config, const ModelSettings& settings);

// Outputs of the head per sample or token: the labels, or beginning and end of an answer.
std::int64_t head_outputs(const Node& config, TaskHead task);

// The labels of a batch: one per sample or token, or the ends of an answer.
struct TaskLabels {
  Tensor first, second;

  void load(Session& session, TaskHead task, const Shape& ids);
};

// Cross entropy of what such a head returns; `in_fp32` widens the scores of tokens before, as the
// classifiers do that all decoders share.
Tensor task_loss(TaskHead task, const Tensor& scores, const TaskLabels& labels, bool in_fp32);

}  // namespace memfathom
