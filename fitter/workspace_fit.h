// Workspace fit: for each operation of a library, how its recorded workspaces follow from the sizes
// of the call.
#pragma once

#include <string>
#include <vector>

#include "core/calibration.h"
#include "fitter/options.h"
#include "fitter/rows.h"

namespace memfathom {

struct WorkspaceModelFit {
  Library library = Library::kCudnn;
  std::string operation;
  int rows = 0;
  std::string terms;                 // "input + output"
  double held_out_median_error = 0;  // of max(measured, predicted) + 1 MiB
  double within_10_percent = 0;      // share of held-out rows
  std::string refusal;               // why there is no model, when there is none
};

struct WorkspaceFit {
  std::vector<Coefficient> coefficients;  // "phi.<library>.<operation>.<term>"
  std::vector<WorkspaceModelFit> models;
};

// Bytes = sum of phi x size with phi >= 0; which sizes is decided by held-out error, the fewest
// first.
WorkspaceFit fit_workspaces(const std::vector<WorkspaceRow>& rows, const FitOptions& options);

}  // namespace memfathom
