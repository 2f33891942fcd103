// A recommendation as text or tables. `gpu` is the local GPU if it is the target.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "core/live_gpu.h"
#include "estimator/advise/preflight.h"
#include "estimator/advise/recommend.h"
#include "estimator/session/job_input.h"

namespace memfathom {

std::string recommendation_text(const Recommendation& recommendation,
                                const std::vector<PreflightItem>& list, const LiveGpu* gpu,
                                const JobInput& input, const Context& context);

// A configuration to paste, in keys of a job or of the files the job came from.
std::string configuration_text(const Configuration& configuration, const std::string& title,
                               const JobInput& input, const Context& context);

// A row for each change: what it saves, and whether it is enough. `is_open`: whether anything fits
// is undecided (JobInput::is_open).
std::string suggestions_text(const std::vector<Suggestion>& suggestions, bool is_open,
                             const Context& context);

}  // namespace memfathom
