// quantile: the value that a share of the others does not exceed; and the median.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace memfathom {

// Always one of the values: the highest within `share`. 0 if empty.
inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  const std::size_t place = std::clamp<std::size_t>(rank, 1, values.size()) - 1;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// For an even count the mean of the two middle values, unlike quantile(). 0 if empty.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

}  // namespace memfathom
