// Fitting: the stored samples of an environment into a saved calibration, and what both say of each
// other.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/calibrate/fit_rows.h"
#include "cli/command.h"
#include "core/table.h"

namespace memfathom {

struct FitResult {
  FitInput input;
  FitSummary summary;
  Calibration saved;
};

// Fits, and saves the result: a refused one too, with its reason.
FitResult fit_and_save(Store& store, const Environment& environment, const Context& context);

// Measured against predicted, of rows kept for validation only or of all.
struct PredictionError {
  int rows = 0;
  double median = 0;
  double p90 = 0;
  double coverage = 0;  // of the calibration's 90 % interval
};
PredictionError validation_error(const FitResult& fitted);

// The report after a fit: brief, or the whole page with --verbose.
void print_fit(const FitResult& fitted, Context& context);
nlohmann::json fit_json(const FitResult& fitted);

// What was measured, and what the calibration says about it.
Table sample_table(const std::vector<Sample>& samples, const FitResult* fitted);

}  // namespace memfathom
