// The estimate as people read it.
#pragma once

#include <string>

#include "cli/command.h"
#include "estimator/answer/estimate.h"

namespace memfathom {

// Which question was answered, with its parameters; an empty line follows.
std::string job_text(const std::string& job, const Estimate& estimate);

// `job`: the job in one line. CSV has the components alone.
std::string estimate_text(const Estimate& estimate, const std::string& job, const Context& context,
                          bool explain);

// "fits: 12 GiB of 24 GiB available, 12 GiB left", with a line feed.
std::string verdict_sentence(const Estimate& estimate, bool colour);

}  // namespace memfathom
