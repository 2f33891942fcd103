// rank_test: the Mann–Whitney U test for times, and Holm's correction for multiple comparisons.
#pragma once

#include <span>
#include <vector>

namespace memfathom {

struct RankTest {
  double p = 1;       // two-sided
  double effect = 0;  // rank-biserial: -1 when every `after` is smaller, 1 when every one is larger
};

// Exact for small samples without ties, else the normal approximation with the correction for ties.
RankTest mann_whitney(std::span<const double> before, std::span<const double> after);

// The adjusted p-values, in the same order. Below alpha: significant.
std::vector<double> holm(std::span<const double> p_values);

}  // namespace memfathom
