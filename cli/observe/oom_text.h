// oom_text: what an out-of-memory message says and what would have helped, as text and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/command.h"
#include "estimator/advise/recommend.h"
#include "estimator/answer/estimate.h"
#include "estimator/readers/oom_message.h"
#include "estimator/session/job_input.h"

namespace memfathom {

std::string oom_text(const OomMessage& message, const Context& context);

// The job that ran out of memory: its estimate, and the cheapest change with which it would fit.
struct OomRemedy {
  Estimate estimate;
  std::optional<Configuration> change;  // nothing: it should fit, or nothing makes it fit
};
std::string remedy_text(const OomRemedy& remedy, const JobInput& input, const Context& context);
nlohmann::ordered_json remedy_json(const OomRemedy& remedy, const JobInput& input);

}  // namespace memfathom
