// Fitting: fits the stored samples of an environment, saves the calibration and compares the two.
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

// Fits and saves the result, including a refused one with its reason.
FitResult fit_and_save(Store& store, const Environment& environment, const Context& context);

// Measured against predicted, for validation rows or all rows.
struct PredictionError {
  int rows = 0;
  double median = 0;
  double p90 = 0;
  double coverage = 0;  // of the calibration's 90 % interval
};
PredictionError validation_error(const FitResult& fitted);

// The report of a fit: brief, or full with --verbose.
void print_fit(const FitResult& fitted, Context& context);
nlohmann::json fit_json(const FitResult& fitted);

// The measured values next to the calibration's predictions.
Table sample_table(const std::vector<Sample>& samples, const FitResult* fitted);

}  // namespace memfathom
