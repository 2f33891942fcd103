// Recommend: the command, and what `estimate --recommend` shares with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/option_parser.h"
#include "estimator/session/estimator.h"
#include "estimator/session/job_input.h"

namespace memfathom {

struct RecommendSettings {
  std::optional<double> probability;
  std::optional<std::string> file;  // --auto: where the recommended job goes
  std::vector<std::string> grid;    // --grid: the largest batch of each combination
  bool by_memory = false;           // --by-memory: a configuration for each class of GPUs

  void declare(OptionParser& parser);
  // Whether any of them but the probability was given: each means a recommendation.
  bool asked() const { return file || !grid.empty() || by_memory; }
};

// 0: the job fits, or some configuration does; 1: none.
ExitCode recommend_for(const JobInput& input, const RecommendSettings& settings,
                       const Estimator& estimator, Context& context);

}  // namespace memfathom
