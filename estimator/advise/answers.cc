#include "estimator/advise/answers.h"

#include "core/error.h"
#include "core/on_all_cores.h"
#include "core/yaml_text.h"
#include "estimator/job/read_job.h"

namespace memfathom {

Answers::Answers(Node document, AnswerJob answer)
    : document_(std::move(document)), answer_(std::move(answer)) {}

Answers::Known& Answers::known(const Node& variant) {
  const std::lock_guard lock(mutex_);
  return known_[to_yaml(variant)];
}

const Estimate* Answers::of(const Patch& patch) {
  const Node variant = patched(document_, patch);
  Known& entry = known(variant);
  std::call_once(entry.asked, [&] {
    try {
      entry.estimate = answer_(read_job(variant));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInput && error.kind() != ErrorKind::kOutOfMemory) throw;
    }
  });
  return entry.estimate ? &*entry.estimate : nullptr;
}

const Estimate& Answers::base() {
  Known& entry = known(document_);
  std::call_once(entry.asked, [&] { entry.estimate = answer_(read_job(document_)); });
  // Somebody may have asked for it by an empty patch, to whom it was no error.
  if (!entry.estimate) entry.estimate = answer_(read_job(document_));
  return *entry.estimate;
}

void Answers::prepare(const std::vector<Patch>& patches) {
  on_all_cores(patches.size(), [&](std::size_t i) { of(patches[i]); });
}

}  // namespace memfathom
