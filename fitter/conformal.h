// Conformal: which groups of out-of-fold ratios get an interval of their own, and how well
// intervals cover.
#pragma once

#include <string>
#include <vector>

#include "core/calibration.h"
#include "fitter/options.h"

namespace memfathom {

struct HeldOutRatio {
  std::string group;
  double ratio = 1;  // measured / predicted
  int fold = 0;
};

// The group of all, every other group by name (without ratios when it does not differ from the
// rest), sorted. A group differs when a two-sample Kolmogorov-Smirnov test says so and it is large
// enough to stand alone.
std::vector<RatioGroup> ratio_groups(const std::vector<HeldOutRatio>& ratios,
                                     const FitOptions& options);

// The p-value of the two-sample Kolmogorov-Smirnov test; both samples sorted.
double kolmogorov_smirnov(const std::vector<double>& a, const std::vector<double>& b);

struct Coverage {
  int rows = 0;
  int covered = 0;
  double share() const { return rows == 0 ? 0 : static_cast<double>(covered) / rows; }
};

// Of `fresh` rows, by intervals of `calibration`.
Coverage coverage_of(const std::vector<HeldOutRatio>& fresh, const Calibration& calibration,
                     double level);

// Of each fold, by intervals made from the other folds: what stands in when no rows were kept for
// validation.
Coverage cross_coverage(const std::vector<HeldOutRatio>& ratios, const FitOptions& options);

// The probability of at most `covered` of `rows` when each is covered with probability `level`.
double binomial_below(int covered, int rows, double level);

}  // namespace memfathom
