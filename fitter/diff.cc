#include "fitter/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/coefficients.h"

namespace memfathom {
namespace {

constexpr double kMiB = 1 << 20;

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

std::string shown(double value, const std::string& unit) {
  return unit == "bytes" ? fmt::format("{:.1f} MiB", value / kMiB) : fmt::format("{:.4f}", value);
}

int rank(Change change) {
  switch (change) {
    case Change::kMoved: return 0;
    case Change::kAppeared:
    case Change::kVanished: return 1;
    case Change::kUndecided: return 2;
    case Change::kSame: return 3;
  }
  return 4;
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
  constexpr std::array<Field, 11> kFields{{{"gpu", &Environment::gpu},
                                           {"architecture", &Environment::architecture},
                                           {"mig", &Environment::mig},
                                           {"driver", &Environment::driver},
                                           {"cuda", &Environment::cuda},
                                           {"cublas", &Environment::cublas},
                                           {"cudnn", &Environment::cudnn},
                                           {"cufft", &Environment::cufft},
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

std::string diff_report(const Calibration& before, const Calibration& after, double threshold) {
  std::vector<CoefficientChange> changes = diff(before, after, threshold);
  std::stable_sort(changes.begin(), changes.end(),
                   [](const CoefficientChange& a, const CoefficientChange& b) {
                     return rank(a.change) < rank(b.change);
                   });
  std::string text = fmt::format("{}: {}\n", after.name,
                                 environment_change(before.environment, after.environment));
  for (const CoefficientChange& c : changes) {
    const double difference = c.after - c.before;
    text += fmt::format("  {:<9} {:<40} {} -> {} ({}{} +- {}, {:+.1f} standard errors)\n",
                        to_string(c.change), c.name, shown(c.before, c.unit),
                        shown(c.after, c.unit), difference < 0 ? "" : "+",
                        shown(difference, c.unit), shown(c.standard_error, c.unit), c.z);
  }
  return text;
}

}  // namespace memfathom
