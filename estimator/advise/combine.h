// Combine: the cheapest set of changes with which a job fits.
//
// Changes are tried in the order in which a practitioner would (ChangeKind): free settings first,
// offloading last.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "estimator/advise/changes.h"
#include "estimator/advise/estimate_cache.h"
#include "estimator/advise/largest_extent.h"
#include "estimator/job/job.h"

namespace memfathom {

struct Combination {
  Patch patch;
  std::vector<SingleChange> changes;  // the cheapest first

  bool trains_the_same() const;
};

// Of all changes those that may be used.
using ChangeFilter = std::function<bool(const SingleChange&)>;

// The changes in one patch, whatever their order: of two ZeRO stages the higher.
Patch patch_of_all(std::vector<SingleChange> changes);

// The changes of a job that can be answered, those of the batch included.
std::vector<SingleChange> candidates_for(EstimateCache& answers, const Job& job);

// A batch of `size` with the accumulation that keeps size * steps.
SingleChange accumulated_batch(const Job& job, std::int64_t size);
// The largest divisor of the effective batch that is at most `size`.
std::int64_t divisor_within(const Job& job, std::int64_t size);

// The batch (alone, and with accumulation that keeps the effective batch), the sequence, the image
// and the frames brought down to where the job fits; to the smallest where that is not enough.
std::vector<SingleChange> smaller_extents(EstimateCache& answers, const Job& job,
                                          const Limit& limit);

// An empty one when the job fits as it is; nothing when no set of changes is enough. Every change
// of it is needed: without any one of them the job would not fit.
std::optional<Combination> cheapest_combination(EstimateCache& answers, const Job& job,
                                                const Limit& limit, const ChangeFilter& usable);

// The combination with the batch as large as fits; accumulation is adjusted so that the effective
// batch is not smaller than it was.
Combination with_largest_batch(EstimateCache& answers, const Job& job, Combination combination,
                               const Limit& limit);

}  // namespace memfathom
