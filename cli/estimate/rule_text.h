// The rule of thumb beside an estimate, as a line and in its JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "estimator/advise/rule_of_thumb.h"
#include "estimator/answer/estimate.h"

namespace memfathom {

std::string rule_text(const RuleOfThumb& rule, const Estimate& estimate);
// `rule_of_thumb` of the estimate's JSON.
nlohmann::ordered_json rule_json(const RuleOfThumb& rule);

}  // namespace memfathom
