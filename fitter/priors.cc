#include "fitter/priors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/coefficients.h"

namespace memfathom {
namespace {

constexpr double kMinSiblingSpread = 16 << 20;  // bytes: siblings never agree better than this

const Coefficient* find(const Calibration& calibration, std::string_view name) {
  const auto at = std::find_if(calibration.coefficients.begin(), calibration.coefficients.end(),
                               [&](const Coefficient& c) { return c.name == name; });
  return at == calibration.coefficients.end() ? nullptr : &*at;
}

Prior widened(double value, double error, double sibling_spread) {
  return {value, std::hypot(error, std::max(sibling_spread * value, kMinSiblingSpread))};
}

}  // namespace

ConstantPriors constant_priors(const FitOptions& options, const Calibration* parent) {
  ConstantPriors prior_set;
  const std::string& framework = options.environment.framework;
  double base = 0;
  double base_error = 0;
  for (std::size_t i = 0; i < kAlwaysCount; ++i) {
    const DefaultConstant& constant = default_of(kLibraryConstants[i], framework);
    base += constant.value;
    base_error = std::hypot(base_error, constant.standard_error);
  }
  prior_set.priors[kBase] = {base, 3 * base_error};
  for (int p = kFirstModule; p < kSolvedConstants; ++p) {
    const DefaultConstant& module = default_of(module_of(p), framework);
    prior_set.priors[static_cast<std::size_t>(p)] = {module.value, 3 * module.standard_error};
  }
  if (parent == nullptr) return prior_set;
  if (parent->environment.architecture != options.environment.architecture ||
      parent->environment.is_virtual() != options.environment.is_virtual()) {
    prior_set.notes.push_back(
        fmt::format("the parent calibration \"{}\" is of {}, not {}: not used", parent->name,
                    parent->environment.architecture, options.environment.architecture));
    return prior_set;
  }
  const Coefficient* parent_context = find(*parent, kLibraryConstants[kContext].name);
  if (parent->environment.framework == framework && parent_context != nullptr) {
    double value = 0;
    for (std::size_t i = 0; i < kAlwaysCount; ++i)
      value += parent->value_of(kLibraryConstants[i].name, 0);
    prior_set.priors[kBase] =
        widened(value, parent_context->standard_error, options.sibling_spread);
  }
  if (parent->environment.framework == "memfathom" && parent_context != nullptr &&
      !parent_context->prior_only) {
    prior_set.context =
        widened(parent_context->value, parent_context->standard_error, options.sibling_spread);
    prior_set.context_known = true;
  }
  for (int p = kFirstModule; p < kSolvedConstants; ++p) {
    const Coefficient* module = find(*parent, module_of(p).name);
    if (module == nullptr || module->prior_only) continue;
    prior_set.priors[static_cast<std::size_t>(p)] =
        widened(module->value, module->standard_error, options.sibling_spread);
  }
  prior_set.notes.push_back(
      fmt::format("priors from the sibling \"{}\" ({} samples)", parent->name, parent->samples));
  return prior_set;
}

}  // namespace memfathom
