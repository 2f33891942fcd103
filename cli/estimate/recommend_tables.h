// Recommend tables: the largest batch of many combinations, and a configuration for each class of
// GPUs.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "estimator/advise/recommend.h"
#include "estimator/session/job_input.h"

namespace memfathom {

// `recommend --grid gpu=rtx-4090,v100-16gb image=64,128`: 0 when every combination has a batch that
// fits, else 1.
ExitCode print_largest_batches(const JobInput& input, const std::vector<std::string>& dimensions,
                               const EstimateFunction& answer, const RecommendOptions& options,
                               const Context& context);

// `recommend --by-memory`: 0 when the job can be made to fit on some class of GPUs.
ExitCode print_by_memory(const JobInput& input, const EstimateFunction& answer,
                         const RecommendOptions& options, const Context& context);

}  // namespace memfathom
