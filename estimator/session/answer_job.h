// Whole answers about a job: what `estimate` and `recommend` show.
#pragma once

#include <optional>
#include <vector>

#include "core/live_gpu.h"
#include "estimator/advise/preflight.h"
#include "estimator/advise/recommend.h"
#include "estimator/advise/rule_of_thumb.h"
#include "estimator/answer/estimate.h"
#include "estimator/session/estimator.h"
#include "estimator/session/job_input.h"

namespace memfathom {

struct EstimateAnswer {
  Estimate estimate;
  std::optional<RuleOfThumb> rule;  // if asked for, and the job has what it needs
  const LiveGpu* gpu = nullptr;     // the live GPU that the job targets; owned by the estimator
};

struct EstimateRequest {
  bool explains = false;
  bool rule_of_thumb = false;
  bool suggests = true;  // false: no changes are tried where it does not fit
};

// The estimate as the job would run, with suggestions where it does not fit.
EstimateAnswer answer_estimate(const JobInput& input, const EstimateRequest& request,
                               const Estimator& estimator);

struct RecommendAnswer {
  Recommendation recommendation;
  std::vector<PreflightItem> checklist;
  const LiveGpu* gpu = nullptr;
};

RecommendAnswer answer_recommend(const JobInput& input, const RecommendOptions& options,
                                 const Estimator& estimator);

}  // namespace memfathom
