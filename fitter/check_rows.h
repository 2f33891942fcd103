// Checks of the rows before anything is fitted: a sentence for what is wrong, or nothing.
#pragma once

#include <string>
#include <vector>

#include "fitter/options.h"
#include "fitter/rows.h"

namespace memfathom {

// A row that cannot be true stops the fit, named: nothing is dropped silently.
std::string impossible_row(const std::vector<FitRow>& rows, const FitOptions& options);

// Too few rows, rows that repeat each other, or that cannot tell one term from another.
std::string too_little_data(const std::vector<const FitRow*>& device_rows,
                            const FitOptions& options);

}  // namespace memfathom
