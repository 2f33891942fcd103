// --auto: writes the job with the changes that make it fit, in the words of the files it came from.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/job/job_source.h"
#include "estimator/advise/recommend.h"
#include "estimator/session/job_input.h"

namespace memfathom {

constexpr const char* kDefaultRecommendedName = "recommended";

// What is written is read and estimated again before, and fits; where that is impossible a sentence
// says why nothing was written. `source` has the flags that were given next to the files.
void write_recommended(const JobInput& input, const JobSource& source,
                       const Recommendation& recommendation, const RecommendOptions& options,
                       const EstimateFunction& answer, const std::string& name,
                       const Context& context);

}  // namespace memfathom
