// Recommend: the parts shared with `estimate --recommend`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/job/job_source.h"
#include "cli/option_parser.h"
#include "estimator/session/estimator.h"
#include "estimator/session/job_input.h"

namespace memfathom {

struct RecommendSettings {
  std::optional<double> probability;
  std::optional<std::string> file;  // --auto: output file of the recommended job
  std::vector<std::string> grid;    // --grid: the largest batch of each combination
  bool by_memory = false;           // --by-memory: a configuration for each class of GPUs
  bool frontier = false;            // --frontier: memory against time

  void declare(OptionParser& parser);
  // Whether an option that implies a recommendation was given (all but the probability).
  bool asked() const { return file || !grid.empty() || by_memory || frontier; }
};

// `source` is what `input` was read from. Returns 0 if the job or a configuration fits, else 1.
ExitCode recommend_for(const JobInput& input, const JobSource& source,
                       const RecommendSettings& settings, const Estimator& estimator,
                       Context& context);

}  // namespace memfathom
