// A comparison of strategies as a table.
#pragma once

#include <string>

#include "cli/command.h"
#include "estimator/session/compare_strategies.h"

namespace memfathom {

std::string comparison_text(const StrategyComparison& comparison, const Context& context);

}  // namespace memfathom
