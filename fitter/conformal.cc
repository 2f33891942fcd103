#include "fitter/conformal.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/interval.h"
#include "fitter/noise.h"

namespace memfathom {
namespace {

constexpr double kClearlyBetter = 4;  // in logarithms of likelihood
constexpr double kStretchStep = 1.05;
constexpr double kMaxStretch = 3;

int folds_in(const std::vector<HeldOutRatio>& rows) {
  std::set<int> folds;
  for (const HeldOutRatio& row : rows) folds.insert(row.fold);
  return static_cast<int>(folds.size());
}

// The ratios as groups, those of all rows stretched away from 1.
std::vector<RatioGroup> stretched_groups(const std::vector<HeldOutRatio>& ratios,
                                         const FitOptions& options, double stretch) {
  std::vector<RatioGroup> result(1);
  std::map<std::string, std::vector<double>> by_group;
  for (const HeldOutRatio& row : ratios) {
    result[0].ratios.push_back(1 + (row.ratio - 1) * stretch);
    if (!row.group.empty()) by_group[row.group].push_back(row.ratio);
  }
  std::sort(result[0].ratios.begin(), result[0].ratios.end());
  for (auto& [name, own] : by_group) {
    std::sort(own.begin(), own.end());
    std::vector<double> rest;
    std::set_difference(result[0].ratios.begin(), result[0].ratios.end(), own.begin(), own.end(),
                        std::back_inserter(rest));
    const bool large_enough = own.size() >= static_cast<std::size_t>(options.min_group_size);
    const double threshold = options.group_significance / static_cast<double>(by_group.size());
    const bool differs = large_enough && !rest.empty() && kolmogorov_smirnov(own, rest) < threshold;
    result.push_back({name, differs ? own : std::vector<double>{}});
  }
  return result;
}

Coverage coverage_at(const std::vector<HeldOutRatio>& ratios, const FitOptions& options,
                     double stretch) {
  Coverage total;
  int folds = 0;
  for (const HeldOutRatio& row : ratios) folds = std::max(folds, row.fold + 1);
  for (int k = 0; k < folds; ++k) {
    std::vector<HeldOutRatio> inside;
    std::vector<HeldOutRatio> outside;
    for (const HeldOutRatio& row : ratios) (row.fold == k ? inside : outside).push_back(row);
    Calibration others;
    others.ratios = stretched_groups(outside, options, stretch);
    const Coverage coverage = coverage_of(inside, others, options.interval_level);
    total.rows += coverage.rows;
    total.covered += coverage.covered;
  }
  return total;
}

// What the few families leave unknown of the next one, and more if the families at hand, each left
// out in turn, are not covered as often as the level says.
double stretch_for(const std::vector<HeldOutRatio>& ratios, const FitOptions& options) {
  if (!options.for_unseen_families) return 1;
  double stretch = small_sample_stretch(folds_in(ratios));
  const double most = kMaxStretch * stretch;
  while (stretch < most && coverage_at(ratios, options, stretch).share() < options.interval_level)
    stretch *= kStretchStep;
  return stretch;
}

}  // namespace

double small_sample_stretch(int families) {
  if (families < 2) return 1;
  constexpr double z = 1.644854;
  const double n = families - 1;
  const double student =
      z + (z * z * z + z) / (4 * n) + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n);
  return student * std::sqrt(1 + 1.0 / families) / z;
}

double interval_knee(const std::vector<HeldOutRatio>& rows, const FitOptions& options) {
  std::map<std::string, std::vector<NoiseReading>> groups;
  double largest = 0;
  for (const HeldOutRatio& row : rows) {
    groups[row.group].push_back({row.predicted, row.predicted - row.measured, 0});
    largest = std::max(largest, row.predicted);
  }
  const auto knee_loss = [&](double knee) {
    double sum = 0;
    for (const auto& [name, readings] : groups)
      sum += negative_log_likelihood(knee, readings, static_cast<double>(options.quantum.count()));
    return sum;
  };
  double best = 0;
  double least = knee_loss(0) - kClearlyBetter;
  for (const double knee : candidate_knees(largest)) {
    const double score = knee_loss(knee);
    if (score >= least) continue;
    least = score;
    best = knee;
  }
  return best;
}

void scale_ratios(double knee, std::vector<HeldOutRatio>* rows) {
  for (HeldOutRatio& row : *rows) row.ratio = scaled_ratio(row.measured, row.predicted, knee);
}

double kolmogorov_smirnov(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) return 1;
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  double widest = 0;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const double value = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= value) ++i;  // ties step together: readings are quantized
    while (j < b.size() && b[j] <= value) ++j;
    widest = std::max(widest, std::abs(static_cast<double>(i) / n - static_cast<double>(j) / m));
  }
  const double root = std::sqrt(n * m / (n + m));
  const double lambda = (root + 0.12 + 0.11 / root) * widest;
  if (lambda < 0.2) return 1;
  double p = 0;
  for (int k = 1; k <= 100; ++k)
    p += (k % 2 == 1 ? 2 : -2) * std::exp(-2.0 * k * k * lambda * lambda);
  return std::clamp(p, 0.0, 1.0);
}

std::vector<RatioGroup> ratio_groups(const std::vector<HeldOutRatio>& ratios,
                                     const FitOptions& options) {
  return stretched_groups(ratios, options, stretch_for(ratios, options));
}

Coverage coverage_of(const std::vector<HeldOutRatio>& fresh, const Calibration& calibration,
                     double level) {
  Coverage coverage;
  for (const HeldOutRatio& row : fresh) {
    const RatioGroup* ratios = ratios_for(calibration, row.group);
    if (ratios == nullptr) continue;
    const RatioInterval interval = ratio_interval(ratios->ratios, level);
    ++coverage.rows;
    if (interval.low <= row.ratio && row.ratio <= interval.high) ++coverage.covered;
  }
  return coverage;
}

Coverage cross_coverage(const std::vector<HeldOutRatio>& ratios, const FitOptions& options) {
  return coverage_at(ratios, options, stretch_for(ratios, options));
}

double binomial_below(int covered, int rows, double level) {
  double sum = 0;
  for (int k = 0; k <= covered; ++k) {
    const double log_choose =
        std::lgamma(rows + 1.0) - std::lgamma(k + 1.0) - std::lgamma(rows - k + 1.0);
    sum += std::exp(log_choose + k * std::log(level) + (rows - k) * std::log1p(-level));
  }
  return std::min(sum, 1.0);
}

}  // namespace memfathom
