// A recommendation as text, tables or JSON.
#pragma once

#include <string>

#include "cli/command.h"
#include "estimator/advise/recommend.h"

namespace memfathom {

std::string recommendation_text(const Recommendation& recommendation, const Context& context);
std::string recommendation_json(const Recommendation& recommendation);
// Numbered lines: "1. gradient_checkpointing none -> full: saves 12 GiB (costs)".
std::string suggestions_text(const std::vector<Suggestion>& suggestions, const Context& context);

}  // namespace memfathom
