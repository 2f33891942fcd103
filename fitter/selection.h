// Selection: which library modules earn a constant of their own, by held-out error, the simpler
// model first.
#pragma once

#include <string>
#include <vector>

#include "fitter/folds.h"
#include "fitter/options.h"
#include "fitter/solver.h"

namespace memfathom {

struct SelectionStep {
  std::string model;  // "constant", "constant + module.cudnn"
  double held_out_loss =
      0;            // mean of |residual| in standard deviations, capped at the robust cut-off
  double gain = 0;  // over the model it was compared with, in standard errors of that difference
  bool kept = false;
};

struct Selection {
  PerParameter<bool> free{};
  std::vector<SelectionStep> steps;
};

// `setup` has every identifiable constant free and carries the noise; modules left out are held at
// 0.
Selection select_modules(const RowList& rows, const SolverSetup& setup, const FitOptions& options);

}  // namespace memfathom
