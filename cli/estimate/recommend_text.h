// A recommendation as text, tables or JSON. `GPU` is that of this machine, where it is the target.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/estimate/job_source.h"
#include "cli/estimate/live_gpu.h"
#include "estimator/advise/preflight.h"
#include "estimator/advise/recommend.h"

namespace memfathom {

std::string recommendation_text(const Recommendation& recommendation,
                                const std::vector<PreflightItem>& list, const LiveGpu* gpu,
                                const JobInput& input, const Context& context);
std::string recommendation_json(const Recommendation& recommendation,
                                const std::vector<PreflightItem>& list, const LiveGpu* gpu,
                                const JobInput& input);

// A configuration to paste: as keys of a job, or in the words of the files the job came from.
std::string configuration_text(const Configuration& configuration, const std::string& title,
                               const JobInput& input, const Context& context);
nlohmann::ordered_json configuration_json(const Configuration& configuration,
                                          const JobInput& input);

// Numbered lines: "1. gradient_checkpointing none -> full: saves 12 GiB (costs)".
std::string suggestions_text(const std::vector<Suggestion>& suggestions, const Context& context);

}  // namespace memfathom
