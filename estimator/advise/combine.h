// Combine: the cheapest set of changes with which a job fits.
#pragma once

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
  std::vector<std::string> changes;  // in words
};

// The batch (alone, and with accumulation that keeps the effective batch), the sequence, the image
// and the frames brought down to where the job fits; to the smallest where that is not enough.
std::vector<SingleChange> smaller_extents(EstimateCache& answers, const Job& job,
                                          const Limit& limit);

// An empty one when the job fits as it is; nothing when no set of changes is enough. Every change
// of it is needed: without any one of them the job would not fit.
std::optional<Combination> cheapest_combination(EstimateCache& answers, const Job& job,
                                                const Limit& limit);

// The combination with the batch as large as fits; accumulation is adjusted so that the effective
// batch is not smaller than it was.
Combination with_largest_batch(EstimateCache& answers, const Job& job, Combination combination,
                               const Limit& limit);

}  // namespace memfathom
