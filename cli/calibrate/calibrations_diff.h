// `calibrations diff`: coefficients that changed between two calibrations by more than their
// errors.
#pragma once

#include "cli/command.h"
#include "core/calibration.h"

namespace memfathom {

void print_difference(const Calibration& before, const Calibration& after, Context& context);

}  // namespace memfathom
