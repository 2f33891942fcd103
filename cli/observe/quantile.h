// Quantile: the value that a share of the others does not exceed.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace memfathom {

// Of few values one that was seen: the highest that `share` reaches. 0 of nothing.
inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  const std::size_t place = std::clamp<std::size_t>(rank, 1, values.size()) - 1;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace memfathom
