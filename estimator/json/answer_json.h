// The JSON that `estimate` and `recommend` print: the result with the job's description, the rule
// of thumb and the live GPU.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "estimator/session/answer_job.h"
#include "estimator/session/job_input.h"

namespace memfathom {

nlohmann::ordered_json answer_json(const EstimateAnswer& answer, const JobInput& input);
nlohmann::ordered_json answer_json(const RecommendAnswer& answer, const JobInput& input);

}  // namespace memfathom
