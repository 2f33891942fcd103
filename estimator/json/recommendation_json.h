// The JSON of a recommendation (docs/contract.md §1). `gpu` is the live GPU that the job targets,
// or null.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/live_gpu.h"
#include "estimator/advise/preflight.h"
#include "estimator/advise/recommend.h"
#include "estimator/session/job_input.h"

namespace memfathom {

nlohmann::ordered_json recommendation_json(const Recommendation& recommendation,
                                           const std::vector<PreflightItem>& list,
                                           const LiveGpu* gpu, const JobInput& input);
nlohmann::ordered_json configuration_json(const Configuration& configuration,
                                          const JobInput& input);

}  // namespace memfathom
