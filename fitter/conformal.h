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
  double ratio = 1;  // measured / predicted, or with a knee: see core/interval.h
  int fold = 0;
  double measured = 0;  // bytes
  double predicted = 0;
};

// By how much the spread of a few families understates how far the next may lie: the ratio of
// Student's prediction quantile to the normal one, at 95 %.
double small_sample_stretch(int families);

// The knee that the rows speak for: the most likely of a grid, each group with a scale of its own;
// 0 (errors are relative throughout) unless a larger one explains them clearly better.
double interval_knee(const std::vector<HeldOutRatio>& rows, const FitOptions& options);

// Makes the ratios those of the knee.
void scale_ratios(double knee, std::vector<HeldOutRatio>* rows);

// The group of all, every other group by name (without ratios when it does not differ from the
// rest), sorted. A group differs when a two-sample Kolmogorov-Smirnov test says so and it is large
// enough to stand alone. With options.for_unseen_families the folds are families, and the ratios
// are stretched by what so few of them leave unknown of the next: until those at hand, each left
// out in turn, are covered.
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
