// Validation: what a fit is worth on rows it did not see.
#pragma once

#include <vector>

#include "fitter/conformal.h"
#include "fitter/fit.h"
#include "fitter/folds.h"

namespace memfathom {

struct Validated {
  std::vector<HeldOutRatio> random;  // out-of-fold, for the intervals
  std::vector<HeldOutRatio>
      families;  // whole families left out, for the published error; empty with one family
  std::vector<HeldOutRatio> kept;  // rows kept for validation
};

// Fits the folds, then fills ratios, quality, points, interval and the comparison with the defaults
// of `summary`.
Validated validate(const RowList& device, const RowList& kept, const SolverSetup& setup,
                   const Solution& solution, const FitOptions& options, FitSummary* summary);

// Why the calibration must not be used, or nothing.
std::string refusal_of(const FitSummary& summary, const Validated& validated,
                       const FitOptions& options);

}  // namespace memfathom
