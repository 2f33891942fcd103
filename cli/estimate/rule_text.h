// The rule of thumb beside an estimate as a line.
#pragma once

#include <string>

#include "estimator/advise/rule_of_thumb.h"
#include "estimator/answer/estimate.h"

namespace memfathom {

std::string rule_text(const RuleOfThumb& rule, const Estimate& estimate);

}  // namespace memfathom
