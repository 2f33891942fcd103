// Fits from observations: other people's measured jobs of one card into a calibration (source:
// published).
#pragma once

#include <string>

#include "cli/command.h"

namespace memfathom {

struct ObservationFit {
  std::string gpu;                // the observations to take; also names the calibration
  std::string name;               // else gpu/framework
  std::string framework_version;  // of the stack they were measured on, where known
  std::string provenance;
};

// Saves the calibration in the database; exit 1 when it is not usable.
ExitCode fit_observations(const ObservationFit& what, Context& context);

}  // namespace memfathom
