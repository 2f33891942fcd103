#include "cli/estimate/rule_text.h"

#include <fmt/format.h>

namespace memfathom {

// The rule of thumb counts one kind of memory and assumes 30 % for the rest.
std::string rule_text(const RuleOfThumb& rule, const Estimate& estimate) {
  std::string text = fmt::format("rule of thumb: {} a layer, {} of activations",
                                 to_string(rule.per_layer), to_string(rule.activations));
  if (rule.limit)
    text += fmt::format(" of {} (70 % of GPU memory): {}", to_string(*rule.limit),
                        rule.safe ? "safe" : "over");
  return text + fmt::format("; the estimate is {}\n", to_string(estimate.totals.device_peak));
}

}  // namespace memfathom
