// The rule of thumb next to an estimate, as one line.
#pragma once

#include <string>

#include "cli/language/language.h"
#include "estimator/advise/rule_of_thumb.h"
#include "estimator/answer/estimate.h"

namespace memfathom {

std::string rule_text(const RuleOfThumb& rule, const Estimate& estimate, Language language);

}  // namespace memfathom
