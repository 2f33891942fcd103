// Fits a calibration from published observations (source: published).
#pragma once

#include <string>

#include "cli/calibrate/fitting.h"
#include "cli/command.h"

namespace memfathom {

struct ObservationFit {
  std::string gpus;               // a GPU name, or "all"
  std::string name;               // default: GPU/framework
  std::string framework_version;  // used if neither job nor observation sets it
  std::string provenance;
};

// For one GPU: its calibration. For all: the default for unmeasured GPUs and stacks, with intervals
// from leaving out whole stacks. Saves the result, including a refused one.
FitResult fit_observations(const ObservationFit& what, Store& store, const Context& context);

}  // namespace memfathom
