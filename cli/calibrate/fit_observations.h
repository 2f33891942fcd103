// Fits from observations: other people's measured jobs into a calibration (source: published).
#pragma once

#include <string>

#include "cli/calibrate/fitting.h"
#include "cli/command.h"

namespace memfathom {

struct ObservationFit {
  std::string cards;              // whose observations: a card's name, or "all"
  std::string name;               // else card/framework
  std::string framework_version;  // of the stack, where neither job nor observation says it
  std::string provenance;
};

// Of one card: its calibration. Of all: what is to be assumed of a card and stack that nobody
// measured, with intervals from leaving whole stacks out. Saved in the database, a refused one too.
Fitted fit_observations(const ObservationFit& what, Store& store, const Context& context);

}  // namespace memfathom
