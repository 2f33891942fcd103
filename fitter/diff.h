// Diff: what changed between two calibrations, and whether it is more than their errors explain.
#pragma once

#include <string>
#include <vector>

#include "core/calibration.h"

namespace memfathom {

enum class Change {
  kSame,       // within the errors
  kMoved,      // further than the errors explain
  kUndecided,  // one side only repeats its prior, or neither has an error
  kAppeared,
  kVanished,
};

struct CoefficientChange {
  std::string name;
  std::string unit;
  double before = 0;
  double after = 0;
  double standard_error = 0;  // of the difference
  double z = 0;               // difference in these
  Change change = Change::kSame;
};

// `threshold` is the number of standard errors beyond which a coefficient moved.
std::vector<CoefficientChange> diff(const Calibration& before, const Calibration& after,
                                    double threshold = 3);

// What differs between the environments: "driver 550.54 -> 570.12, cuda 12.4 -> 12.8".
std::string environment_change(const Environment& before, const Environment& after);

const char* to_string(Change change);

}  // namespace memfathom
