// Solver: one robust fit of some of the parameters; Ceres itself is included by solver.cc and
// workspace_fit.cc only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fitter/noise.h"
#include "fitter/parameters.h"
#include "fitter/rows.h"

namespace memfathom {

using RowList = std::vector<const FitRow*>;

struct SolverSetup {
  PerParameter<bool> free{};  // the others stay at `start`
  PerParameter<Prior> priors;
  PerParameter<double> start{};  // bytes, or 1 for factors
  double quantum = 0;            // bytes
  const Noise* noise = nullptr;  // given for folds; null: estimated from the rows
  bool with_uncertainty = true;  // folds do without
  bool common_noise = false;     // whatever libraries a row loads
};

struct Solution {
  PerParameter<double> value{};      // bytes, or 1
  std::vector<double> covariance;    // row-major over all parameters; rows of held ones are 0
  PerParameter<double> pull{};       // share of the estimate that comes from the prior, 0..1
  PerParameter<int> rows_bearing{};  // rows with a gradient in the parameter
  Noise noise;
  bool converged = false;
  std::string message;  // Ceres' own words
  int iterations = 0;

  double covariance_of(int p, int q) const;
  double variance(int parameter) const { return covariance_of(parameter, parameter); }
  double predict(const FitRow& row) const;  // bytes
};

// First the convex problem (Huber's loss: residuals are linear, so there is one minimum and every
// start reaches it), then from there Tukey's loss, which lets gross outliers go entirely. Fewer
// than 12 rows stay with the convex one. The covariance is the sandwich of an M-estimate: right
// also when the noise differs from row to row.
Solution solve(const RowList& rows, const SolverSetup& setup);

// The sum over the rows of Tukey's loss at the solution: how much the model leaves unexplained.
double unexplained(const RowList& rows, const Solution& solution);

// Residual in standard deviations, and the share of the solution that hangs on the row (0..1).
struct RowInfluence {
  double z = 0;
  double leverage = 0;
};
std::vector<RowInfluence> influences(const RowList& rows, const SolverSetup& setup,
                                     const Solution& solution);

inline constexpr double kTukeyCutoff =
    4.685;  // 95 % efficiency under normal noise; beyond it a row has no weight

}  // namespace memfathom
