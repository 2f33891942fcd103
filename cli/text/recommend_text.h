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

// A row for each point, the quickest first.
std::string frontier_text(const std::vector<FrontierPoint>& frontier, const Context& context);

// Numbered lines: "1. gradient_checkpointing none -> full: saves 12 GiB (costs)".
std::string suggestions_text(const std::vector<Suggestion>& suggestions, const Context& context);

}  // namespace memfathom
