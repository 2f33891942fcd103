// `calibrations diff`: which coefficients moved between two calibrations, beyond what their errors
// explain.
#pragma once

#include "cli/command.h"
#include "core/calibration.h"

namespace memfathom {

void print_difference(const Calibration& before, const Calibration& after, Context& context);

}  // namespace memfathom
