// Preflight: the list one goes through before a long run, with what is known already ticked off.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/advise/recommend.h"
#include "estimator/job/job.h"

namespace memfathom {

struct PreflightItem {
  std::string name;  // memory | others | batch | accumulation | precision | frozen | calibration
  bool done = false;
  std::string text;
};

// Empty without a target. `others` names who else uses the GPU; nothing where nobody asked.
std::vector<PreflightItem> preflight(const Node& document, const Job& job,
                                     const Recommendation& recommendation,
                                     const std::optional<std::vector<std::string>>& others);

}  // namespace memfathom
