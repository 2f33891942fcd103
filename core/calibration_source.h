// CalibrationSource: provides calibrations to the estimator. db/database_calibrations.h implements
// it with the SQLite store and the embedded published calibrations.
#pragma once

#include <string>
#include <vector>

#include "core/calibration.h"

namespace memfathom {

class CalibrationSource {
 public:
  virtual ~CalibrationSource() = default;
  // Usable calibrations made on real devices, oldest first.
  virtual const std::vector<Calibration>& stored() const = 0;
  // Calibrations fitted to published measurements, and the documented defaults.
  virtual const std::vector<Calibration>& published() const = 0;
  // The origin of stored(), for messages: the path of a database.
  virtual std::string location() const = 0;
};

}  // namespace memfathom
