// Diagnosis: what the residuals say about terms the model lacks. Its factors never enter an answer.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "fitter/options.h"
#include "fitter/solver.h"

namespace memfathom {

// A term that, were it in the model, would explain the residuals better than chance allows.
struct MissingTerm {
  std::string coefficient;  // "theta.activations", "theta.replay", "theta.per_layer"
  double value = 0;         // a factor, or bytes
  double standard_error = 0;
  double z = 0;         // distance from neutral in standard errors
  double explains = 0;  // share of the unexplained loss that it removes
  std::string sentence;
  std::array<double, kSolvedConstants> shifts{};  // bytes by which the constants would move with it
};

// How the replay compares where the allocator's own counters were measured: no constant is
// involved.
struct ReplayCheck {
  Metric metric = Metric::kReserved;
  int rows = 0;
  double median_ratio = 1;  // measured / replayed
  double p90_error = 0;
};

struct Diagnosis {
  Solution factors;  // all factors together, each with a prior at its neutral value
  PerParameter<double> pull{};
  std::vector<MissingTerm> missing;  // the most telling first
  std::vector<ReplayCheck> checks;
};

// `rows` are the fitted rows of all metrics, `device` those of the device metric only.
Diagnosis diagnose(const RowList& rows, const RowList& device, const SolverSetup& setup,
                   const Solution& constants, const FitOptions& options);

}  // namespace memfathom
