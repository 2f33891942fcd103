// The JSON of a comparison of strategies (docs/contract.md §1).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "estimator/session/compare_strategies.h"

namespace memfathom {

nlohmann::ordered_json comparison_json(const StrategyComparison& comparison);

}  // namespace memfathom
