// Calibration text: looks up calibrations and formats them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/calibration.h"
#include "db/store.h"

namespace memfathom {

// A calibration with its status, computed without a device.
struct ListedCalibration {
  Calibration calibration;
  std::string status;  // calibrated, superseded, refused; published for the embedded ones
  std::vector<Annotation> annotations;  // only if one was requested
};

// The calibrations of the database, then the published ones.
std::vector<ListedCalibration> all_calibrations(const std::optional<Store>& store);

// Finds a calibration by name, id or id prefix (core/name_lookup.h); for equal names the database
// takes precedence. Throws Error(kInput).
ListedCalibration lookup_calibration(const std::string& wanted, const std::optional<Store>& store);

using TextRows = std::vector<std::vector<std::string>>;

TextRows calibration_properties(const ListedCalibration& listed);  // property, value
// Coefficient, value, standard error, source, samples, meaning.
TextRows calibration_coefficients(const Calibration& calibration);

std::string percent_text(const std::optional<double>& fraction);  // "1.27 %", "-"

}  // namespace memfathom
