// The estimate as people read it.
#pragma once

#include <string>

#include "cli/command.h"
#include "estimator/answer/estimate.h"

namespace memfathom {

std::string estimate_text(const Estimate& estimate, const Context& context, bool explain);

}  // namespace memfathom
