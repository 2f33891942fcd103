// oom_text: what an out-of-memory message says and what would have helped, as text and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "estimator/readers/oom_message.h"

namespace memfathom {

// What follows from the figures, most important first.
std::vector<std::string> oom_advice(const OomMessage& message);
std::string oom_text(const OomMessage& message, const Context& context);
nlohmann::ordered_json oom_json(const OomMessage& message);

}  // namespace memfathom
