#include "estimator/advise/estimate_cache.h"

#include <algorithm>

#include "core/error.h"
#include "core/parallel_for.h"
#include "core/yaml_text.h"
#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

// Two sets of the same changes are one variant, whichever of them was made first.
Node in_order(const Node& node) {
  if (node.is_list()) {
    Node list = Node::list();
    for (const Node& item : node.items()) list.append(in_order(item));
    return list;
  }
  if (!node.is_map()) return node;
  std::vector<const Node*> entries;
  for (const Node& entry : node.entries()) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const Node* a, const Node* b) { return a->key() < b->key(); });
  Node map = Node::map();
  for (const Node* entry : entries) map.set(entry->key(), in_order(*entry));
  return map;
}

}  // namespace

EstimateCache::EstimateCache(Node document, EstimateFunction answer, const Job& original)
    : document_(std::move(document)),
      job_(read_variant(document_, original)),
      answer_(std::move(answer)) {}

Job EstimateCache::variant(const Patch& patch) const {
  return read_variant(patched(document_, patch), job_);
}

EstimateCache::Entry& EstimateCache::entry_for(const Node& variant) {
  const std::string key = to_yaml(in_order(variant));
  const std::lock_guard lock(mutex_);
  return entries_[key];
}

const Estimate* EstimateCache::ask(const Patch& patch, std::optional<Bytes> ceiling) {
  const Node changed = patched(document_, patch);
  Entry& entry = entry_for(changed);
  const std::lock_guard lock(entry.asking);
  if (!entry.answered && !(ceiling && *ceiling <= entry.above)) {
    try {
      entry.estimate = answer_(read_variant(changed, job_), ceiling);
      entry.answered = true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInput && error.kind() != ErrorKind::kOutOfMemory) throw;
      entry.answered = !ceiling || error.kind() == ErrorKind::kInput;
      if (ceiling) entry.above = *ceiling;
    }
  }
  if (!entry.estimate) return nullptr;
  const bool is_above = ceiling && entry.estimate->totals.device_peak > *ceiling;
  return is_above ? nullptr : &*entry.estimate;
}

const Estimate* EstimateCache::of(const Patch& patch) { return ask(patch, std::nullopt); }

const Estimate* EstimateCache::within(Bytes ceiling, const Patch& patch) {
  return ask(patch, ceiling);
}

const Estimate& EstimateCache::base() {
  Entry& entry = entry_for(document_);
  const std::lock_guard lock(entry.asking);
  // Somebody may have asked for it by an empty patch, to whom it was no error.
  if (!entry.estimate) entry.estimate = answer_(job_, std::nullopt);
  entry.answered = true;
  return *entry.estimate;
}

void EstimateCache::know_base(Estimate estimate) {
  Entry& entry = entry_for(document_);
  const std::lock_guard lock(entry.asking);
  entry.estimate = std::move(estimate);
  entry.answered = true;
}

void EstimateCache::prepare(const std::vector<Patch>& patches) {
  parallel_for(patches.size(), [&](std::size_t i) { of(patches[i]); });
}

}  // namespace memfathom
