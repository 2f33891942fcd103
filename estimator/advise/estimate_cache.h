// EstimateCache: estimates of variants of one job document, each asked for once.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/document.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/job.h"
#include "estimator/job/patch.h"

namespace memfathom {

// Estimates a job. May be called from several threads at once. With a ceiling it may throw
// Error(kOutOfMemory) as soon as it is sure that the device peak lies above it.
using EstimateFunction = std::function<Estimate(const Job& job, std::optional<Bytes> ceiling)>;

// May be asked from several threads; a variant that another thread is at is waited for.
class EstimateCache {
 public:
  // Reads the document; its model is taken from `original` where it is the same. Throws what
  // reading throws.
  EstimateCache(Node document, EstimateFunction answer, const Job& original = {});

  const Node& document() const { return document_; }
  const Job& job() const { return job_; }
  // The job of the document with the patch. The model is read again only if the patch changes it.
  Job variant(const Patch& patch) const;
  // The estimate of the document with the patch; null when the patched job cannot be answered (a
  // model that has no such attention, a number of GPUs that does not divide). The pointer stays
  // valid.
  const Estimate* of(const Patch& patch);
  // The same where only an estimate that may be at most so high is of use: null, too, when it lies
  // above. Cheaper than of() for one that does.
  const Estimate* within(Bytes ceiling, const Patch& patch);
  // The unchanged job. Throws what answering it throws.
  const Estimate& base();
  // The answer for the original job, where the caller has it already.
  void know_base(Estimate estimate);
  // Answers all of them, on every core; of() then has them at once.
  void prepare(const std::vector<Patch>& patches);

 private:
  struct Entry {
    std::mutex asking;
    bool answered = false;  // by an estimate, or by an error for good
    std::optional<Estimate> estimate;
    Bytes above;  // while not answered: it is higher than this
  };
  Entry& entry_for(const Node& variant);
  const Estimate* ask(const Patch& patch, std::optional<Bytes> ceiling);

  Node document_;
  Job job_;
  EstimateFunction answer_;
  std::mutex mutex_;  // of the map; an entry has its own
  std::map<std::string, Entry> entries_;
};

}  // namespace memfathom
