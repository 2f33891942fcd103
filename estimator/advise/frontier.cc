#include "estimator/advise/frontier.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/yaml_text.h"
#include "estimator/advise/combine.h"
#include "estimator/advise/time_cost.h"

namespace memfathom {
namespace {

// Sets of more changes are made of sets of fewer on the frontier, for so many rounds.
constexpr int kRounds = 4;
// Two times or sizes nearer than this are the same: the time model is rougher, and the allocator's
// pages are no saving.
constexpr double kSame = 0.003;

struct Candidate {
  Combination changes;
  Bytes peak;
  Bytes host;
  TimeCost time;
};

// At least as good in both, and better in one; or alike and of fewer changes. More of the host's
// memory is a price too.
bool beats(const Candidate& a, const Candidate& b) {
  // A job that trains something else is no substitute for one that trains the same.
  if (!a.changes.trains_the_same() && b.changes.trains_the_same()) return false;
  const auto memory = static_cast<double>(a.peak.count()) / static_cast<double>(b.peak.count());
  const double time = a.time.factor / b.time.factor;
  if (memory > 1 + kSame || time > 1 + kSame || a.host > b.host) return false;
  if (memory < 1 - kSame || time < 1 - kSame) return true;
  const bool more_alike = a.changes.trains_the_same() && !b.changes.trains_the_same();
  return more_alike || a.changes.changes.size() < b.changes.changes.size();
}

void add(Candidate candidate, std::vector<Candidate>& front) {
  if (std::any_of(front.begin(), front.end(),
                  [&](const Candidate& known) { return beats(known, candidate); }))
    return;
  std::erase_if(front, [&](const Candidate& known) { return beats(candidate, known); });
  front.push_back(std::move(candidate));
}

// The changes, and a batch between 1 and the present one.
std::vector<SingleChange> frontier_changes(EstimateCache& answers, const Job& job) {
  std::vector<SingleChange> changes = candidates_for(answers, job);
  const std::int64_t half = divisor_within(job, job.training.batch_size / 2);
  if (half > 1 && job.training.mode == Mode::kTrain && job.model.trace() == nullptr)
    changes.push_back(accumulated_batch(job, half));
  return changes;
}

// Every set on the frontier with one more change, each once.
std::vector<std::vector<SingleChange>> longer_sets(const std::vector<Candidate>& front,
                                                   const std::vector<SingleChange>& changes) {
  std::vector<std::vector<SingleChange>> sets;
  std::set<std::string> known;
  for (const Candidate& point : front) {
    for (const SingleChange& change : changes) {
      std::vector<SingleChange> set = point.changes.changes;
      if (std::any_of(set.begin(), set.end(),
                      [&](const SingleChange& one) { return one.group == change.group; }))
        continue;
      set.push_back(change);
      std::stable_sort(set.begin(), set.end(), is_cheaper);
      if (known.insert(to_yaml(patch_tree(patch_of_all(set)))).second)
        sets.push_back(std::move(set));
    }
  }
  return sets;
}

}  // namespace

std::vector<FrontierPoint> frontier_of(EstimateCache& answers, const Job& job,
                                       const std::optional<Limit>& limit) {
  const std::vector<SingleChange> changes = frontier_changes(answers, job);
  std::vector<Candidate> front{{Combination{}, answers.base().totals.device_peak,
                                answers.base().totals.host_of_node().value_or(Bytes{}),
                                TimeCost{}}};
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<std::vector<SingleChange>> sets = longer_sets(front, changes);
    std::vector<Patch> patches;
    patches.reserve(sets.size());
    for (const std::vector<SingleChange>& set : sets) patches.push_back(patch_of_all(set));
    answers.prepare(patches);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const Estimate* estimate = answers.of(patches[i]);
      if (estimate == nullptr || (limit && !limit->host_holds(*estimate)) ||
          (answers.base().trainable_count > 0 && estimate->trainable_count == 0))
        continue;
      add({Combination{patches[i], sets[i]}, estimate->totals.device_peak,
           estimate->totals.host_of_node().value_or(Bytes{}), time_cost(answers, patches[i])},
          front);
    }
  }
  std::stable_sort(front.begin(), front.end(), [](const Candidate& a, const Candidate& b) {
    return a.time.factor < b.time.factor;
  });
  std::vector<FrontierPoint> points;
  for (const Candidate& candidate : front) {
    const Estimate& estimate = *answers.of(candidate.changes.patch);
    FrontierPoint point;
    for (const SingleChange& change : candidate.changes.changes) {
      point.names.push_back(change.name);
      point.changes.push_back(change.change);
    }
    point.patch = patch_tree(candidate.changes.patch);
    point.device_peak = candidate.peak;
    point.host_of_node = estimate.totals.host_of_node();
    point.time_factor = candidate.time.factor;
    point.time_basis = candidate.time.basis;
    point.trains_the_same = candidate.changes.trains_the_same();
    point.fits = limit && limit->holds(estimate);
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace memfathom
