// Recommend: the command, and what `estimate --recommend` shares with it.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/estimation.h"
#include "cli/job_source.h"
#include "cli/option_parser.h"

namespace memfathom {

struct RecommendSettings {
  std::optional<double> probability;
  std::optional<std::string> file;  // --auto: where the recommended job goes

  void declare(OptionParser& parser);
};

// 0: the job fits, or some configuration does; 1: none.
ExitCode recommend_for(const JobInput& input, const RecommendSettings& settings,
                       const Estimation& estimation, Context& context);

}  // namespace memfathom
