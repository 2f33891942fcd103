// Fits from observations: other people's measured jobs into a calibration (source: published).
#pragma once

#include <string>

#include "cli/calibrate/fitting.h"
#include "cli/command.h"

namespace memfathom {

struct ObservationFit {
  std::string gpus;               // whose observations: a GPU's name, or "all"
  std::string name;               // else GPU/framework
  std::string framework_version;  // of the stack, where neither job nor observation says it
  std::string provenance;
};

// Of one GPU: its calibration. Of all: what is to be assumed of a GPU and stack that nobody
// measured, with intervals from leaving whole stacks out. Saved in the database, a refused one too.
FitResult fit_observations(const ObservationFit& what, Store& store, const Context& context);

}  // namespace memfathom
