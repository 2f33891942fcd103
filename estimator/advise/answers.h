// Answers: estimates of variants of one job document, each asked for once.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/document.h"
#include "estimator/advise/patch.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/job.h"

namespace memfathom {

using AnswerJob = std::function<Estimate(const Job&)>;

class Answers {
 public:
  Answers(Node document, AnswerJob answer);

  const Node& document() const { return document_; }
  // The estimate of the document with the patch; null when the patched job cannot be answered (a
  // model that has no such attention, a number of GPUs that does not divide). The pointer stays
  // valid.
  const Estimate* of(const Patch& patch);
  // The unchanged job. Throws what reading or answering it throws.
  const Estimate& base();

 private:
  Node document_;
  AnswerJob answer_;
  std::map<std::string, std::optional<Estimate>> known_;
};

}  // namespace memfathom
