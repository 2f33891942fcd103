// Answers: estimates of variants of one job document, each asked for once.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/advise/patch.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/job.h"

namespace memfathom {

// May be called from several threads at once.
using AnswerJob = std::function<Estimate(const Job&)>;

// May be asked from several threads; a variant that another thread is at is waited for.
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
  // Answers all of them, on every core; of() then has them at once.
  void prepare(const std::vector<Patch>& patches);

 private:
  struct Known {
    std::once_flag asked;
    std::optional<Estimate> estimate;
  };
  Known& known(const Node& variant);

  Node document_;
  AnswerJob answer_;
  std::mutex mutex_;  // of the map; an entry has its own flag
  std::map<std::string, Known> known_;
};

}  // namespace memfathom
