#include "core/collectives.h"

#include <algorithm>
#include <cmath>

namespace memfathom {
namespace {

const Coefficient* find(const Calibration& calibration, std::string_view name) {
  const auto found = std::find_if(calibration.coefficients.begin(), calibration.coefficients.end(),
                                  [&](const Coefficient& one) { return one.name == name; });
  return found == calibration.coefficients.end() ? nullptr : &*found;
}

}  // namespace

std::optional<CommunicatorBytes> measured_communicators(const Calibration& calibration,
                                                        const std::vector<std::int64_t>& ranks) {
  const Coefficient* first = find(calibration, collectives::kFirst);
  if (first == nullptr) return std::nullopt;
  double communicators = 0;
  double further_ranks = 0;
  for (const std::int64_t size : ranks) {
    if (size < 2) continue;
    communicators += 1;
    further_ranks += static_cast<double>(size - 2);
  }
  if (communicators == 0) return CommunicatorBytes{};
  CommunicatorBytes result{first->value, first->standard_error};
  const auto add = [&](std::string_view name, double times) {
    const Coefficient* one = find(calibration, name);
    if (one == nullptr || times == 0) return;
    result.bytes += times * one->value;
    result.standard_error = std::hypot(result.standard_error, times * one->standard_error);
  };
  add(collectives::kNext, communicators - 1);
  add(collectives::kPerRank, further_ranks);
  return result;
}

}  // namespace memfathom
