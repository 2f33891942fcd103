#include "estimator/advise/answers.h"

#include "core/error.h"
#include "core/yaml_text.h"
#include "estimator/job/read_job.h"

namespace memfathom {

Answers::Answers(Node document, AnswerJob answer)
    : document_(std::move(document)), answer_(std::move(answer)) {}

const Estimate* Answers::of(const Patch& patch) {
  const Node variant = patched(document_, patch);
  const auto [entry, is_new] = known_.try_emplace(to_yaml(variant));
  if (is_new) {
    try {
      entry->second = answer_(read_job(variant));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInput && error.kind() != ErrorKind::kOutOfMemory) throw;
    }
  }
  return entry->second ? &*entry->second : nullptr;
}

const Estimate& Answers::base() {
  std::optional<Estimate>& known = known_[to_yaml(document_)];
  if (!known) known = answer_(read_job(document_));
  return *known;
}

}  // namespace memfathom
