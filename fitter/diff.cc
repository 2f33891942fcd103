#include "fitter/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace memfathom {
namespace {

const Coefficient* find(const Calibration& calibration, const std::string& name) {
  const auto at = std::find_if(calibration.coefficients.begin(), calibration.coefficients.end(),
                               [&](const Coefficient& c) { return c.name == name; });
  return at == calibration.coefficients.end() ? nullptr : &*at;
}

CoefficientChange compare(const Coefficient& a, const Coefficient& b, double threshold) {
  CoefficientChange result{a.name, a.unit, a.value, b.value,
                           std::hypot(a.standard_error, b.standard_error)};
  const double difference = b.value - a.value;
  if (result.standard_error > 0) result.z = difference / result.standard_error;
  if (a.prior_only || b.prior_only || (result.standard_error <= 0 && difference != 0)) {
    result.change = Change::kUndecided;
  } else {
    result.change = std::abs(result.z) > threshold ? Change::kMoved : Change::kSame;
  }
  return result;
}

}  // namespace

const char* to_string(Change change) {
  switch (change) {
    case Change::kSame: return "same";
    case Change::kMoved: return "moved";
    case Change::kUndecided: return "undecided";
    case Change::kAppeared: return "new";
    case Change::kVanished: return "gone";
  }
  return "";
}

std::vector<CoefficientChange> diff(const Calibration& before, const Calibration& after,
                                    double threshold) {
  std::vector<CoefficientChange> changes;
  for (const Coefficient& a : before.coefficients) {
    if (const Coefficient* b = find(after, a.name)) {
      changes.push_back(compare(a, *b, threshold));
    } else {
      changes.push_back({a.name, a.unit, a.value, 0, a.standard_error, 0, Change::kVanished});
    }
  }
  for (const Coefficient& b : after.coefficients) {
    if (find(before, b.name) == nullptr) {
      changes.push_back({b.name, b.unit, 0, b.value, b.standard_error, 0, Change::kAppeared});
    }
  }
  return changes;
}

std::string environment_change(const Environment& before, const Environment& after) {
  struct Field {
    const char* name;
    std::string Environment::*value;
  };
  constexpr std::array<Field, 12> kFields{{{"gpu", &Environment::gpu},
                                           {"architecture", &Environment::architecture},
                                           {"mig", &Environment::mig},
                                           {"driver", &Environment::driver},
                                           {"cuda", &Environment::cuda},
                                           {"cublas", &Environment::cublas},
                                           {"cudnn", &Environment::cudnn},
                                           {"cufft", &Environment::cufft},
                                           {"module loading", &Environment::module_loading},
                                           {"framework", &Environment::framework},
                                           {"framework version", &Environment::framework_version},
                                           {"os", &Environment::os}}};
  std::string text;
  for (const Field& field : kFields) {
    const std::string& a = before.*field.value;
    const std::string& b = after.*field.value;
    if (a == b) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {} -> {}", field.name, a.empty() ? "unknown" : a,
                        b.empty() ? "unknown" : b);
  }
  return text.empty() ? "the environments are the same" : text;
}

}  // namespace memfathom
