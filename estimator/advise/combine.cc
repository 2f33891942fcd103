#include "estimator/advise/combine.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "estimator/advise/time_cost.h"
#include "estimator/parallel/strategy.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxTimes = 64;  // how far the batch of the maximal configuration may grow

// Whether smaller passes can be summed up: not those of a recorded step, whose passes are its own.
bool accumulates(const Job& job) {
  return job.training.mode == Mode::kTrain && job.model.trace() == nullptr;
}

// A change that leaves nothing to train is no way to train.
bool still_trains(EstimateCache& answers, const Estimate& estimate) {
  return answers.base().trainable_count == 0 || estimate.trainable_count > 0;
}

bool holds(EstimateCache& answers, const Patch& patch, const Limit& limit) {
  const Estimate* estimate = answers.within(limit.available, patch);
  return estimate != nullptr && limit.holds(*estimate) && still_trains(answers, *estimate);
}

// The changes with one more, which takes the place of another of its group.
std::vector<SingleChange> with(std::vector<SingleChange> chosen, const SingleChange& change) {
  std::erase_if(chosen, [&](const SingleChange& one) { return one.group == change.group; });
  chosen.push_back(change);
  return chosen;
}

// Whether the changes take less memory than `before`, and no more of the host than it has. What
// helps nothing now may help once something else is smaller, so equal is enough, but not to take
// another's place.
bool improves(EstimateCache& answers, const std::vector<SingleChange>& changes, Bytes before,
              bool replaces, const Limit& limit) {
  const Estimate* estimate = answers.of(patch_of_all(changes));
  if (estimate == nullptr || !still_trains(answers, *estimate) || !limit.host_holds(*estimate))
    return false;
  const Bytes peak = estimate->totals.device_peak;
  return peak < before || (peak == before && !replaces);
}

// The candidates, with the free ones once more before those that change the result: what saved
// nothing beside large activations may save something beside small ones.
std::vector<SingleChange> in_order_of_trial(const std::vector<SingleChange>& candidates) {
  std::vector<SingleChange> trials;
  const auto different =
      std::find_if(candidates.begin(), candidates.end(),
                   [](const SingleChange& one) { return one.kind >= ChangeKind::kDifferent; });
  trials.assign(candidates.begin(), different);
  std::copy_if(candidates.begin(), different, std::back_inserter(trials),
               [](const SingleChange& one) { return one.kind == ChangeKind::kFree; });
  trials.insert(trials.end(), different, candidates.end());
  return trials;
}

// Adds one change after the other, the cheapest first, until the job fits. False: it does not with
// any of them.
bool climb(EstimateCache& answers, const std::vector<SingleChange>& candidates, const Limit& limit,
           std::vector<SingleChange>& chosen) {
  for (const SingleChange& candidate : in_order_of_trial(candidates)) {
    const Bytes before = answers.of(patch_of_all(chosen))->totals.device_peak;
    std::vector<SingleChange> more = with(chosen, candidate);
    const bool replaces = more.size() == chosen.size();
    if (!improves(answers, more, before, replaces, limit)) continue;
    chosen = std::move(more);
    if (holds(answers, patch_of_all(chosen), limit)) return true;
    // Accumulation keeps gradients between the passes: once states are sharded, the whole batch may
    // take less.
    std::vector<SingleChange> whole_batch = chosen;
    std::erase_if(whole_batch,
                  [](const SingleChange& one) { return one.group == ChangeGroup::kBatch; });
    if (whole_batch.size() < chosen.size() && holds(answers, patch_of_all(whole_batch), limit)) {
      chosen = std::move(whole_batch);
      return true;
    }
  }
  return false;
}

// A setting that makes the job clearly faster is worth having even where it is not needed: 16-bit
// products beside a smaller batch.
bool is_worth_leaving_out(EstimateCache& answers, const SingleChange& change,
                          const std::vector<SingleChange>& all,
                          const std::vector<SingleChange>& fewer) {
  constexpr double kClearly = 1.1;
  if (change.kind != ChangeKind::kFree) return true;
  return time_cost(answers, patch_of_all(fewer)).factor <
         kClearly * time_cost(answers, patch_of_all(all)).factor;
}

// Leaves out what is not needed, the dearest first.
void leave_out(EstimateCache& answers, const Limit& limit, std::vector<SingleChange>& chosen) {
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const SingleChange& a, const SingleChange& b) { return is_cheaper(b, a); });
  for (std::size_t i = 0; i < chosen.size();) {
    std::vector<SingleChange> fewer = chosen;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (holds(answers, patch_of_all(fewer), limit) &&
        is_worth_leaving_out(answers, chosen[i], chosen, fewer)) {
      chosen = std::move(fewer);
    } else {
      ++i;
    }
  }
}

// Puts a cheaper change of the same group in the place of each, where that is enough too: ZeRO-1
// for ZeRO-3.
void weaken(EstimateCache& answers, const std::vector<SingleChange>& candidates, const Limit& limit,
            std::vector<SingleChange>& chosen) {
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    for (const SingleChange& candidate : candidates) {
      if (candidate.group != chosen[i].group || !is_cheaper(candidate, chosen[i])) continue;
      const SingleChange kept = std::exchange(chosen[i], candidate);
      if (holds(answers, patch_of_all(chosen), limit)) break;
      chosen[i] = kept;
    }
  }
}

SingleChange smaller_extent(const Extent& extent, std::int64_t value, bool trains) {
  const bool batch = extent.name == "batch_size";
  return {batch ? "batch" : extent.name,
          fmt::format("{} {} -> {}", extent.name, extent.text(extent.now), extent.text(value)),
          !batch   ? "each sample is truncated or downscaled"
          : trains ? "fewer samples per step: gradients are noisier"
                   : "more, smaller passes for the same samples",
          batch ? ChangeGroup::kBatch : ChangeGroup::kExtent,
          // A smaller batch of inference has the same results.
          batch && !trains ? ChangeKind::kBatch : ChangeKind::kSample, batch ? 0 : 1,
          extent.patch(value)};
}

// A smaller batch, with accumulation where something is trained.
SingleChange smaller_batch(const Job& job, std::int64_t size) {
  if (job.training.mode == Mode::kTrain) return accumulated_batch(job, size);
  return smaller_extent({"batch_size", job.training.batch_size}, size, false);
}

// A batch of 1 was enough; perhaps more is. The others stay.
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
    const SingleChange larger = smaller_batch(job, size);
    if (!holds(answers, patch_of_all(with(others, larger)), limit)) continue;
    *batch = larger;
    return;
  }
}

// When all changes are not enough: a shorter sequence, a smaller image, fewer frames, whichever
// first is.
bool shrink_extent(EstimateCache& answers, const Job& job, const Limit& limit,
                   std::vector<SingleChange>& chosen) {
  for (const Extent& extent : extents_of(answers.document(), job)) {
    if (extent.name == "batch_size" && job.model.trace() == nullptr) continue;
    const auto value = largest_that_fits(answers, patch_of_all(chosen), extent, limit, 1);
    if (!value || *value >= extent.now) continue;
    chosen.push_back(smaller_extent(extent, *value, job.training.mode == Mode::kTrain));
    return true;
  }
  return false;
}

}  // namespace

bool Combination::trains_the_same() const {
  return std::all_of(changes.begin(), changes.end(), [](const SingleChange& change) {
    return memfathom::trains_the_same(change.kind);
  });
}

Patch patch_of_all(std::vector<SingleChange> changes) {
  constexpr std::string_view kStage = "parallel.zero_stage";
  std::stable_sort(changes.begin(), changes.end(), is_cheaper);
  Patch patch;
  for (const SingleChange& change : changes) {
    for (const KeyChange& one : change.patch) {
      const auto same = std::find_if(patch.begin(), patch.end(),
                                     [&](const KeyChange& known) { return known.key == one.key; });
      if (same == patch.end()) {
        patch.push_back(one);
      } else if (one.key != kStage || one.value.as_int() > same->value.as_int()) {
        same->value = one.value;
      }
    }
  }
  return patch;
}

SingleChange accumulated_batch(const Job& job, std::int64_t size) {
  const TrainingSpec& training = job.training;
  const std::int64_t effective = training.batch_size * training.accumulation_steps;
  const std::int64_t steps = effective / size;
  return {"accumulation",
          fmt::format("batch_size {} -> {}, gradient_accumulation_steps {} -> {}",
                      training.batch_size, size, training.accumulation_steps, steps),
          fmt::format("keeps the effective batch size of {}; more and smaller passes",
                      effective * data_parallel_size(job.parallel)),
          ChangeGroup::kBatch,
          ChangeKind::kBatch,
          0,
          {{"training.batch_size", Node::integer(size)},
           {"training.gradient_accumulation_steps", Node::integer(steps)}}};
}

std::int64_t divisor_within(const Job& job, std::int64_t size) {
  const std::int64_t effective = job.training.batch_size * job.training.accumulation_steps;
  std::int64_t best = std::max<std::int64_t>(1, std::min(size, effective));
  while (effective % best != 0) --best;
  return best;
}

std::vector<SingleChange> candidates_for(EstimateCache& answers, const Job& job) {
  std::vector<SingleChange> candidates = possible_changes(answers.document(), job);
  if (job.training.batch_size > 1 && job.model.trace() == nullptr)
    candidates.push_back(smaller_batch(job, 1));
  std::erase_if(candidates,
                [&](const SingleChange& change) { return answers.of(change.patch) == nullptr; });
  std::stable_sort(candidates.begin(), candidates.end(), is_cheaper);
  return candidates;
}

std::vector<SingleChange> smaller_extents(EstimateCache& answers, const Job& job,
                                          const Limit& limit) {
  std::vector<SingleChange> changes;
  const bool trains = job.training.mode == Mode::kTrain;
  for (const Extent& extent : extents_of(answers.document(), job)) {
    const bool batch = extent.name == "batch_size";
    const std::int64_t value =
        largest_that_fits(answers, {}, extent, limit, 1).value_or(batch ? 1 : extent.now);
    if (value >= extent.now) continue;
    changes.push_back(smaller_extent(extent, value, trains));
    if (batch && accumulates(job))
      changes.push_back(accumulated_batch(job, divisor_within(job, value)));
  }
  return changes;
}

std::optional<Combination> cheapest_combination(EstimateCache& answers, const Job& job,
                                                const Limit& limit, const ChangeFilter& usable) {
  if (limit.holds(answers.base())) return Combination{};
  std::vector<SingleChange> candidates = candidates_for(answers, job);
  if (usable) std::erase_if(candidates, [&](const SingleChange& one) { return !usable(one); });
  std::vector<SingleChange> chosen;
  if (!climb(answers, candidates, limit, chosen)) {
    if (!shrink_extent(answers, job, limit, chosen)) return std::nullopt;
    if (usable && !usable(chosen.back())) return std::nullopt;
  }
  // The batch first: with one as large as the cheaper changes allow, they are needed.
  enlarge_batch(answers, job, limit, chosen);
  leave_out(answers, limit, chosen);
  weaken(answers, candidates, limit, chosen);
  std::stable_sort(chosen.begin(), chosen.end(), is_cheaper);
  return Combination{patch_of_all(chosen), chosen};
}

Combination with_largest_batch(EstimateCache& answers, const Job& job, Combination combination,
                               const Limit& limit) {
  const TrainingSpec& training = job.training;
  std::vector<SingleChange> others = combination.changes;
  std::erase_if(others,
                [](const SingleChange& change) { return change.group == ChangeGroup::kBatch; });
  const Extent extent{"batch_size", training.batch_size};
  const bool trains = accumulates(job);
  const std::int64_t effective = training.batch_size * training.accumulation_steps;
  // Accumulating keeps gradients between the passes, so it must be there when the batch is looked
  // for.
  Patch base = patch_of_all(others);
  if (trains)
    base.push_back({"training.gradient_accumulation_steps",
                    Node::integer(std::max<std::int64_t>(2, training.accumulation_steps))});
  const std::int64_t size = largest_that_fits(answers, base, extent, limit, kMaxTimes).value_or(1);
  const std::int64_t steps = trains ? (effective + size - 1) / size : training.accumulation_steps;
  // Accumulation costs memory too: what it leaves may be less than the combination has already.
  if (size <= answers.variant(combination.patch).training.batch_size) return combination;
  SingleChange batch = smaller_extent(extent, size, trains);
  batch.kind = ChangeKind::kBatch;
  batch.costs = "the largest batch that fits";
  if (steps != training.accumulation_steps) {
    batch.patch.push_back({"training.gradient_accumulation_steps", Node::integer(steps)});
    batch.change +=
        fmt::format(", gradient_accumulation_steps {} -> {}", training.accumulation_steps, steps);
  }
  others.push_back(std::move(batch));
  std::stable_sort(others.begin(), others.end(), is_cheaper);
  Combination larger{patch_of_all(others), others};
  return holds(answers, larger.patch, limit) ? larger : combination;
}

}  // namespace memfathom
