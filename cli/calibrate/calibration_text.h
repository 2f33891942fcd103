// Calibration text: a calibration as people ask for it, and its figures in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/calibration.h"
#include "db/store.h"

namespace memfathom {

// A calibration with what can be said of it without asking a device.
struct ListedCalibration {
  Calibration calibration;
  std::string status;  // calibrated, superseded, refused; published for the embedded ones
  std::vector<Annotation> annotations;  // where one was asked for
};

// Those of the database, then the published ones.
std::vector<ListedCalibration> all_calibrations(const std::optional<Store>& store);

// By name, id or the beginning of one (core/name_lookup.h), among all of them; by name, the
// database's before a published one. Throws Error(kInput).
ListedCalibration lookup_calibration(const std::string& wanted, const std::optional<Store>& store);

using TextRows = std::vector<std::vector<std::string>>;

TextRows calibration_properties(const ListedCalibration& listed);  // property, value
// Coefficient, value, standard error, source, samples, meaning.
TextRows calibration_coefficients(const Calibration& calibration);

std::string percent_text(const std::optional<double>& fraction);  // "1.27 %", "-"

}  // namespace memfathom
