#include "core/calibration.h"

#include <algorithm>

namespace memfathom {

double Calibration::value_of(std::string_view coefficient, double fallback) const {
  const auto found = std::find_if(coefficients.begin(), coefficients.end(),
                                  [&](const Coefficient& c) { return c.name == coefficient; });
  return found == coefficients.end() ? fallback : found->value;
}

}  // namespace memfathom
