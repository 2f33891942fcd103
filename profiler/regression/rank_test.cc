#include "profiler/regression/rank_test.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace memfathom {
namespace {

constexpr std::size_t kMaxSamplesForExactTest =
    20;  // per side; above it the approximation is as good

// The share of all arrangements of m and n values in which U is at most `u`. Recursion: the largest
// value is of the first kind and exceeds all n of the second, or it is of the second kind.
double exact_share(std::size_t m, std::size_t n, std::size_t u) {
  using Ways = std::vector<double>;  // by U
  const Ways only_zero = [&] {
    Ways ways(m * n + 1, 0);
    ways[0] = 1;
    return ways;
  }();
  std::vector<Ways> with(n + 1, only_zero);  // by the number of the second kind
  for (std::size_t first = 1; first <= m; ++first) {
    for (std::size_t second = 1; second <= n; ++second) {
      Ways next = with[second - 1];
      for (std::size_t k = second; k < next.size(); ++k) next[k] += with[second][k - second];
      with[second] = std::move(next);
    }
  }
  const Ways& all = with[n];
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(u, m * n) + 1);
  return std::accumulate(all.begin(), end, 0.0) / std::accumulate(all.begin(), all.end(), 0.0);
}

double normal_tail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

// The sum of t^3 - t over groups of equal values.
double tie_term(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  double term = 0;
  for (std::size_t i = 0; i < all.size();) {
    const auto end =
        std::upper_bound(all.begin() + static_cast<std::ptrdiff_t>(i), all.end(), all[i]);
    const auto group = static_cast<double>(end - all.begin()) - static_cast<double>(i);
    term += group * group * group - group;
    i = static_cast<std::size_t>(end - all.begin());
  }
  return term;
}

}  // namespace

RankTest mann_whitney(std::span<const double> before, std::span<const double> after) {
  if (before.empty() || after.empty()) return {};
  double larger = 0;  // pairs in which `after` is larger; ties count half
  for (const double a : after) {
    for (const double b : before) larger += a > b ? 1 : a == b ? 0.5 : 0;
  }
  const auto m = static_cast<double>(before.size());
  const auto n = static_cast<double>(after.size());
  RankTest test;
  test.effect = 2 * larger / (m * n) - 1;

  std::vector<double> all(before.begin(), before.end());
  all.insert(all.end(), after.begin(), after.end());
  const double ties = tie_term(all);
  const double smaller = std::min(larger, m * n - larger);
  if (ties == 0 && before.size() <= kMaxSamplesForExactTest &&
      after.size() <= kMaxSamplesForExactTest) {
    test.p = std::min(
        1.0, 2 * exact_share(before.size(), after.size(), static_cast<std::size_t>(smaller)));
    return test;
  }
  const double count = m + n;
  const double variance = m * n / 12 * (count + 1 - ties / (count * (count - 1)));
  if (variance <= 0) return test;  // all values are equal
  const double z = std::max(0.0, m * n / 2 - smaller - 0.5) / std::sqrt(variance);
  test.p = std::min(1.0, 2 * normal_tail(z));
  return test;
}

std::vector<double> holm(std::span<const double> p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> corrected(p_values.size());
  double highest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double factor = static_cast<double>(order.size() - i);
    highest = std::max(highest, std::min(1.0, factor * p_values[order[i]]));
    corrected[order[i]] = highest;
  }
  return corrected;
}

}  // namespace memfathom
