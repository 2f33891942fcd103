// The rule of thumb beside an estimate, as a line and in its JSON.
#pragma once

#include <string>

#include "estimator/advise/rule_of_thumb.h"
#include "estimator/answer/estimate.h"

namespace memfathom {

std::string rule_text(const RuleOfThumb& rule, const Estimate& estimate);
// The JSON of an estimate with `rule_of_thumb` added.
std::string with_rule(const std::string& estimate, const RuleOfThumb& rule);

}  // namespace memfathom
