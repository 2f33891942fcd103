#include "cli/estimate/rule_text.h"

namespace memfathom {

// The rule of thumb counts one kind of memory and assumes 30 % for the rest.
std::string rule_text(const RuleOfThumb& rule, const Estimate& estimate, Language language) {
  std::string text = translated(language, "rule of thumb: {} a layer, {} of activations",
                                {to_string(rule.per_layer), to_string(rule.activations)});
  if (rule.limit)
    text += translated(language, " of {} (70 % of GPU memory): {}",
                       {to_string(*rule.limit), translated(language, rule.safe ? "safe" : "over")});
  return text +
         translated(language, "; the estimate is {}", {to_string(estimate.totals.device_peak)}) +
         "\n";
}

}  // namespace memfathom
