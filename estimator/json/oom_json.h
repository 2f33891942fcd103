// The JSON of an out-of-memory message, and what follows from its figures.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "estimator/readers/oom_message.h"

namespace memfathom {

struct OomFigure {
  const char* name;  // "tried"
  std::optional<Bytes> bytes;
  const char* meaning;  // "requested when it failed"
};
// All of them, those that the message does not have without bytes.
std::vector<OomFigure> oom_figures(const OomMessage& message);

// What follows from the figures, most important first.
std::vector<std::string> oom_advice(const OomMessage& message);

// memfathom.oom/1
nlohmann::ordered_json oom_json(const OomMessage& message);

}  // namespace memfathom
