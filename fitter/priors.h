// Priors: what is believed of the constants before the data: a sibling's values, else the
// documented defaults.
#pragma once

#include <string>
#include <vector>

#include "core/calibration.h"
#include "fitter/options.h"
#include "fitter/parameters.h"

namespace memfathom {

struct ConstantPriors {
  PerParameter<Prior> priors;
  Prior context;  // the part of the base that is the bare context, when something tells it
  bool context_known = false;
  std::vector<std::string> notes;
};

ConstantPriors constant_priors(const FitOptions& options, const Calibration* parent);

}  // namespace memfathom
