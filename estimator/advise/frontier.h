// Frontier: the sets of changes that no other set beats in memory and in time at once, without
// taking more of the host's memory.
#pragma once

#include <optional>
#include <vector>

#include "estimator/advise/estimate_cache.h"
#include "estimator/advise/largest_extent.h"
#include "estimator/advise/recommend.h"
#include "estimator/job/job.h"

namespace memfathom {

// The quickest first; the unchanged job is among them unless a free change beats it.
std::vector<FrontierPoint> frontier_of(EstimateCache& answers, const Job& job,
                                       const std::optional<Limit>& limit);

}  // namespace memfathom
