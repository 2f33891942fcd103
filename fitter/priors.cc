#include "fitter/priors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/coefficients.h"

namespace memfathom {
namespace {

constexpr double kMinSiblingSpread = 16 << 20;  // bytes: siblings never agree better than this

ConstantIndex constant_of(int parameter) {
  return static_cast<ConstantIndex>(parameter - kCublas + static_cast<int>(kModuleCublas));
}

const Coefficient* find(const Calibration& calibration, const char* name) {
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
  const DefaultConstant context = default_constant(kContext, framework);
  const DefaultConstant extra = default_constant(kFramework, framework);
  prior_set.priors[kBase] = {context.value + extra.value,
                             3 * std::hypot(context.standard_error, extra.standard_error)};
  for (int p = kCublas; p < kSolvedConstants; ++p) {
    const DefaultConstant module = default_constant(constant_of(p), framework);
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
  const Coefficient* parent_context = find(*parent, "context");
  const Coefficient* parent_framework = find(*parent, "framework");
  if (parent->environment.framework == framework && parent_context != nullptr) {
    const double value =
        parent_context->value + (parent_framework != nullptr ? parent_framework->value : 0);
    prior_set.priors[kBase] =
        widened(value, parent_context->standard_error, options.sibling_spread);
  }
  if (parent->environment.framework == "memfathom" && parent_context != nullptr &&
      !parent_context->prior_only) {
    prior_set.context =
        widened(parent_context->value, parent_context->standard_error, options.sibling_spread);
    prior_set.context_known = true;
  }
  for (int p = kCublas; p < kSolvedConstants; ++p) {
    const Coefficient* module = find(*parent, constant_name(constant_of(p)));
    if (module == nullptr || module->prior_only) continue;
    prior_set.priors[static_cast<std::size_t>(p)] =
        widened(module->value, module->standard_error, options.sibling_spread);
  }
  prior_set.notes.push_back(
      fmt::format("priors from the sibling \"{}\" ({} samples)", parent->name, parent->samples));
  return prior_set;
}

}  // namespace memfathom
