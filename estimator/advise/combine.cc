#include "estimator/advise/combine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "estimator/job/read_job.h"
#include "estimator/parallel/strategy.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxTimes = 64;  // how far the batch of the maximal configuration may grow

Patch patch_of_all(const std::vector<SingleChange>& changes) {
  Patch patch;
  for (const SingleChange& change : changes) patch = joined(std::move(patch), change.patch);
  return patch;
}

bool holds(EstimateCache& answers, const Patch& patch, const Limit& limit) {
  const Estimate* estimate = answers.within(limit.available, patch);
  return estimate != nullptr && limit.holds(*estimate) &&
         (answers.base().trainable_count == 0 || estimate->trainable_count > 0);
}

// A batch of `size` with the accumulation that keeps size * steps.
SingleChange accumulated_batch(const Job& job, std::int64_t size) {
  const TrainingSpec& training = job.training;
  const std::int64_t effective = training.batch_size * training.accumulation_steps;
  const std::int64_t steps = effective / size;
  return {"accumulation",
          fmt::format("batch_size {} -> {}, gradient_accumulation_steps {} -> {}",
                      training.batch_size, size, training.accumulation_steps, steps),
          fmt::format("the effective batch of {} is kept; more, smaller passes take longer",
                      effective * data_parallel_size(job.parallel)),
          ChangeGroup::kBatch,
          3,
          {{"training.batch_size", Node::integer(size)},
           {"training.gradient_accumulation_steps", Node::integer(steps)}}};
}

// The largest divisor of the effective batch that is at most `size`.
std::int64_t divisor_within(const Job& job, std::int64_t size) {
  const std::int64_t effective = job.training.batch_size * job.training.accumulation_steps;
  std::int64_t best = std::max<std::int64_t>(1, std::min(size, effective));
  while (effective % best != 0) --best;
  return best;
}

std::vector<SingleChange> candidates_for(EstimateCache& answers, const Job& job) {
  std::vector<SingleChange> candidates = possible_changes(answers.document(), job);
  if (job.training.batch_size > 1 && job.training.mode == Mode::kTrain)
    candidates.push_back(accumulated_batch(job, 1));
  std::erase_if(candidates,
                [&](const SingleChange& change) { return answers.of(change.patch) == nullptr; });
  return candidates;
}

int price_of(const std::vector<SingleChange>& changes) {
  int price = 0;
  for (const SingleChange& change : changes) price += change.price;
  return price;
}

// Everything at once that helps, the strongest of each group: where a search for what can be left
// out begins.
std::vector<SingleChange> everything(EstimateCache& answers, std::vector<SingleChange> candidates) {
  const auto peak = [&](const Patch& patch) {
    return answers.of(patch) == nullptr ? Bytes{} : answers.of(patch)->totals.device_peak;
  };
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [&](const SingleChange& a, const SingleChange& b) { return peak(a.patch) < peak(b.patch); });
  std::vector<SingleChange> chosen;
  for (const SingleChange& candidate : candidates) {
    const auto same_group = [&](const SingleChange& other) {
      return other.group == candidate.group;
    };
    if (std::any_of(chosen.begin(), chosen.end(), same_group)) continue;
    const Bytes before =
        chosen.empty() ? answers.base().totals.device_peak : peak(patch_of_all(chosen));
    chosen.push_back(candidate);
    const Estimate* estimate = answers.of(patch_of_all(chosen));
    const bool usable = estimate != nullptr && estimate->totals.device_peak <= before &&
                        (answers.base().trainable_count == 0 || estimate->trainable_count > 0);
    if (!usable) chosen.pop_back();
  }
  return chosen;
}

// Leaves out the dearest that is not needed, again and again.
void leave_out(EstimateCache& answers, const Limit& limit, std::vector<SingleChange>& chosen) {
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const SingleChange& a, const SingleChange& b) { return a.price > b.price; });
  for (std::size_t i = 0; i < chosen.size();) {
    std::vector<SingleChange> fewer = chosen;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (holds(answers, patch_of_all(fewer), limit)) {
      chosen = std::move(fewer);
    } else {
      ++i;
    }
  }
}

// Puts a cheaper change in the place of a dear one, the dearest first, while that is enough too.
void exchange(EstimateCache& answers, const std::vector<SingleChange>& candidates,
              const Limit& limit, std::vector<SingleChange>& chosen) {
  constexpr int kMaxTries = 12;  // so that the search stays quick
  std::vector<SingleChange> others = candidates;
  std::stable_sort(others.begin(), others.end(),
                   [](const SingleChange& a, const SingleChange& b) { return a.price < b.price; });
  int tries = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    for (const SingleChange& other : others) {
      const auto taken = [&](const SingleChange& one) {
        return &one != &chosen[i] && one.group == other.group;
      };
      if (other.price >= chosen[i].price || std::any_of(chosen.begin(), chosen.end(), taken))
        continue;
      if (++tries > kMaxTries) return;
      const SingleChange kept = std::exchange(chosen[i], other);
      if (holds(answers, patch_of_all(chosen), limit)) break;
      chosen[i] = kept;
    }
  }
}

// Every change of what is left is needed, and none has a cheaper one that would do.
void cheapen(EstimateCache& answers, const std::vector<SingleChange>& candidates,
             const Limit& limit, std::vector<SingleChange>& chosen) {
  leave_out(answers, limit, chosen);
  exchange(answers, candidates, limit, chosen);
  leave_out(answers, limit, chosen);
}

struct RankedChange {
  const SingleChange* change;
  double saves;
};

// Sets of up to three changes that cost less than `most` and, were savings to add up, would save
// `need`; the cheapest first.
std::vector<std::vector<SingleChange>> saving_change_sets(const std::vector<RankedChange>& helpful,
                                                          double need, int most) {
  std::vector<std::vector<SingleChange>> sets;
  const auto extend = [&](const auto& self, std::vector<SingleChange> set, double saves,
                          std::size_t from) -> void {
    if (!set.empty() && saves >= need) {
      sets.push_back(std::move(set));  // whatever is added to it costs more
      return;
    }
    for (std::size_t i = from; i < helpful.size() && set.size() < 3; ++i) {
      const SingleChange& next = *helpful[i].change;
      const auto same_group = [&](const SingleChange& one) { return one.group == next.group; };
      if (price_of(set) + next.price >= most || std::any_of(set.begin(), set.end(), same_group))
        continue;
      std::vector<SingleChange> longer = set;
      longer.push_back(next);
      self(self, std::move(longer), saves + helpful[i].saves, i + 1);
    }
  };
  extend(extend, {}, 0, 0);
  std::stable_sort(sets.begin(), sets.end(), [](const auto& a, const auto& b) {
    return std::pair(price_of(a), a.size()) < std::pair(price_of(b), b.size());
  });
  return sets;
}

// Leaving out from everything can end beside the cheapest: single changes, pairs and triples that
// cost less are tried too. Together changes can save more or less than each alone, so those come
// first that surely would be enough, then the less certain; never many, so that the search stays
// quick.
void try_cheaper(EstimateCache& answers, const std::vector<SingleChange>& candidates,
                 const Limit& limit, std::vector<SingleChange>& chosen) {
  constexpr std::size_t kMaxTries = 6;
  const double base = static_cast<double>(answers.base().totals.device_peak.count());
  const double need = base - static_cast<double>(limit.available.count());
  std::vector<RankedChange> helpful;
  for (const SingleChange& candidate : candidates) {
    const double saves =
        base - static_cast<double>(answers.of(candidate.patch)->totals.device_peak.count());
    if (saves > 0) helpful.push_back({&candidate, saves});
  }
  for (const double near : {1.0, 0.7}) {
    std::vector<std::vector<SingleChange>> sets =
        saving_change_sets(helpful, near * need, price_of(chosen));
    if (sets.size() > kMaxTries) sets.resize(kMaxTries);
    for (std::vector<SingleChange>& set : sets) {
      if (!holds(answers, patch_of_all(set), limit)) continue;
      chosen = std::move(set);
      break;
    }
  }
}

// A batch of 1 was enough; perhaps more is.
void enlarge_batch(EstimateCache& answers, const Job& job, const Limit& limit,
                   std::vector<SingleChange>& chosen) {
  const auto batch = std::find_if(chosen.begin(), chosen.end(), [](const SingleChange& change) {
    return change.group == ChangeGroup::kBatch;
  });
  if (batch == chosen.end()) return;
  std::vector<SingleChange> others = chosen;
  others.erase(others.begin() + (batch - chosen.begin()));
  for (std::int64_t size = divisor_within(job, job.training.batch_size - 1); size > 1;
       size = divisor_within(job, size - 1)) {
    const SingleChange larger = accumulated_batch(job, size);
    if (!holds(answers, joined(patch_of_all(others), larger.patch), limit)) continue;
    *batch = larger;
    return;
  }
}

// When all changes are not enough: a shorter sequence, a smaller image, fewer frames, whichever
// first is.
bool shrink_extent(EstimateCache& answers, const Job& job, const Limit& limit,
                   std::vector<SingleChange>& chosen) {
  for (const Extent& extent : extents_of(answers.document(), job)) {
    if (extent.name == "batch_size") continue;
    const auto value = largest_that_fits(answers, patch_of_all(chosen), extent, limit, 1);
    if (!value || *value >= extent.now) continue;
    chosen.push_back(
        {extent.name,
         fmt::format("{} {} -> {}", extent.name, extent.text(extent.now), extent.text(*value)),
         "the model sees less of each sample", ChangeGroup::kExtent, 20, extent.patch(*value)});
    return true;
  }
  return false;
}

}  // namespace

std::vector<SingleChange> smaller_extents(EstimateCache& answers, const Job& job,
                                          const Limit& limit) {
  std::vector<SingleChange> changes;
  for (const Extent& extent : extents_of(answers.document(), job)) {
    const bool batch = extent.name == "batch_size";
    const std::int64_t value =
        largest_that_fits(answers, {}, extent, limit, 1).value_or(batch ? 1 : extent.now);
    if (value >= extent.now) continue;
    changes.push_back(
        {batch ? "batch" : extent.name,
         fmt::format("{} {} -> {}", extent.name, extent.text(extent.now), extent.text(value)),
         batch ? "fewer samples per step: gradients are noisier"
               : "the model sees less of each sample",
         batch ? ChangeGroup::kBatch : ChangeGroup::kExtent, 20, extent.patch(value)});
    if (batch && job.training.mode == Mode::kTrain)
      changes.push_back(accumulated_batch(job, divisor_within(job, value)));
  }
  return changes;
}

std::optional<Combination> cheapest_combination(EstimateCache& answers, const Job& job,
                                                const Limit& limit) {
  if (limit.holds(answers.base())) return Combination{};
  const std::vector<SingleChange> candidates = candidates_for(answers, job);
  std::vector<SingleChange> chosen = everything(answers, candidates);
  if (!holds(answers, patch_of_all(chosen), limit) && !shrink_extent(answers, job, limit, chosen))
    return std::nullopt;
  cheapen(answers, candidates, limit, chosen);
  try_cheaper(answers, candidates, limit, chosen);
  leave_out(answers, limit, chosen);  // not all of a set that fits need be needed
  enlarge_batch(answers, job, limit, chosen);
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const SingleChange& a, const SingleChange& b) { return a.price < b.price; });
  Combination combination{patch_of_all(chosen), {}};
  for (const SingleChange& change : chosen) combination.changes.push_back(change.change);
  return combination;
}

Combination with_largest_batch(EstimateCache& answers, const Job& job, Combination combination,
                               const Limit& limit) {
  const TrainingSpec& training = job.training;
  Combination larger = combination;
  std::erase_if(larger.patch, [](const KeyChange& change) {
    return change.key == "training.batch_size" ||
           change.key == "training.gradient_accumulation_steps";
  });
  std::erase_if(larger.changes,
                [](const std::string& change) { return change.starts_with("batch_size "); });
  const Extent extent{"batch_size", training.batch_size};
  const bool trains = training.mode == Mode::kTrain;
  const std::int64_t effective = training.batch_size * training.accumulation_steps;
  // Accumulating keeps gradients between the passes, so it must be there when the batch is looked
  // for.
  Patch with = larger.patch;
  if (trains)
    with.push_back({"training.gradient_accumulation_steps",
                    Node::integer(std::max<std::int64_t>(2, training.accumulation_steps))});
  const std::int64_t size = largest_that_fits(answers, with, extent, limit, kMaxTimes).value_or(1);
  const std::int64_t steps = trains ? (effective + size - 1) / size : training.accumulation_steps;
  // Accumulation costs memory too: what it leaves may be less than the combination has already.
  if (size <= answers.variant(combination.patch).training.batch_size) return combination;
  larger.patch = joined(std::move(larger.patch), extent.patch(size));
  std::string words = fmt::format("batch_size {} -> {}", training.batch_size, size);
  if (steps != training.accumulation_steps) {
    larger.patch.push_back({"training.gradient_accumulation_steps", Node::integer(steps)});
    words +=
        fmt::format(", gradient_accumulation_steps {} -> {}", training.accumulation_steps, steps);
  }
  larger.changes.push_back(std::move(words));
  return holds(answers, larger.patch, limit) ? larger : combination;
}

}  // namespace memfathom
