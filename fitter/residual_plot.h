// Residual plot: what a fit leaves unexplained, as one self-contained SVG.
#pragma once

#include <string>

#include "fitter/fit.h"

namespace memfathom {

// Measured / predicted - 1 in percent against the predicted size (logarithmic), by folds that did
// not see the row: a colour per group, outliers as rings, validation rows as squares, the
// prediction interval as a band.
std::string residual_plot(const FitSummary& summary);

}  // namespace memfathom
