// Fit: samples in, a calibration with honest uncertainty out, or a reason why not.
#pragma once

#include <string>
#include <vector>

#include "core/calibration.h"
#include "core/interval.h"
#include "fitter/diagnosis.h"
#include "fitter/options.h"
#include "fitter/rows.h"
#include "fitter/selection.h"
#include "fitter/workspace_fit.h"

namespace memfathom {

// A row far from its prediction. It is listed, it has no or little weight in the coefficients, and
// it counts in the intervals.
struct Outlier {
  std::string id;
  double measured = 0;  // bytes; the capacity of a censored row
  double predicted = 0;
  double z = 0;           // in standard deviations of the noise
  double leverage = 0;    // 0..1: how much of the fit would hang on it
  bool censored = false;  // the prediction contradicts "it fitted" or "it did not"
};

// One row of the residual plot.
struct ResidualPoint {
  std::string group;
  double predicted = 0;  // bytes, by a fit that did not see the row
  double ratio = 1;      // measured / predicted
  bool outlier = false;
  bool validation = false;
};

struct FitSummary {
  Calibration result;
  std::vector<std::string>
      notes;  // choices that a reader should know: priors used, terms not told apart
  Noise noise;
  bool converged = false;
  int iterations = 0;
  int censored = 0;
  int families = 0;
  PerParameter<double> pull{};  // of the priors on the constants
  std::vector<SelectionStep> selection;
  std::vector<Outlier> outliers;  // the worst first
  Diagnosis diagnosis;
  std::vector<WorkspaceModelFit> workspaces;
  std::vector<ResidualPoint> points;
  double default_median_error = 0;  // of the documented constants on the same held-out rows
  double fitted_median_error = 0;
  double knee = 0;         // bytes; see core/interval.h
  RatioInterval interval;  // at options.interval_level, of all rows

  bool usable() const { return result.usable; }
  const Calibration& calibration() const { return result; }
  std::string brief() const;  // one line
  std::string full() const;   // a page
};

// Throws Error(kInput) for options that make no sense. Everything else, however bad the data, is an
// answer: a summary that is not usable() and says why. `parent` is a calibration of the same
// architecture, or null. `workspaces` is stage one's result, with which the cli replayed the jobs
// in `rows`.
FitSummary fit(const std::vector<FitRow>& rows, const WorkspaceFit& workspaces,
               const FitOptions& options, const Calibration* parent = nullptr);

// The same for callers whose jobs need no replay with the fitted workspaces.
FitSummary fit(const std::vector<FitRow>& rows, const std::vector<WorkspaceRow>& workspaces,
               const FitOptions& options, const Calibration* parent = nullptr);

}  // namespace memfathom
