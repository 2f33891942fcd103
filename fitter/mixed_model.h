// Mixed model: a robust linear fit with common coefficients and deviations of groups. Each kind of
// deviation (by GPU, by release, ...) has a distribution around 0, so a group with few rows stays
// near the common line: a normal one whose width is estimated from the data, or Cauchy's, under
// which most groups agree and a few may differ much.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace memfathom {

struct MixedRow {
  std::vector<double> terms;        // factors of the common coefficients
  std::vector<std::string> groups;  // one per kind of deviation; empty: none
  double group_factor = 1;          // of every deviation
  double value = 0;
  double noise = 1;  // standard deviation up to a common factor
};

// What is known of a common coefficient before the fit.
struct MixedPrior {
  double mean = 0;
  double deviation = 0;
};

struct MixedOptions {
  std::vector<std::optional<MixedPrior>> priors;  // empty, or one entry per coefficient
  std::size_t heavy_tailed =
      0;  // the first kinds have Cauchy's distribution, half as wide as the noise
};

struct MixedFit {
  std::vector<double> coefficients;
  std::vector<double> standard_errors;  // of the coefficients; of M-estimates, rows independent
  std::vector<std::map<std::string, double>> deviations;  // one map per kind
  std::vector<double> widths;  // standard deviations of the kinds, unseen groups have them
  double scale = 1;            // the noise is so many times MixedRow::noise
  bool converged = false;

  // Groups that the fit has not seen deviate by 0.
  double predict(const MixedRow& row) const;
};

// Huber's loss first, which is convex, then Tukey's, which gives gross outliers no weight. Throws
// Error(kInput) if there are fewer rows than coefficients or if rows differ in shape.
MixedFit fit_mixed_model(const std::vector<MixedRow>& rows, const MixedOptions& options = {});

}  // namespace memfathom
