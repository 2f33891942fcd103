// Provenance: where a row of the fleet's database was measured, kept as an annotation of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/store.h"

namespace memfathom {

struct Provenance {
  std::string type;  // as Slurm calls the GPU
  std::string node;
  std::string job;  // Slurm's id; empty outside of Slurm

  bool operator==(const Provenance&) const = default;
};

// "fleet type=a100 node=n1 job=17"
std::string to_note(const Provenance& provenance);
// Nullopt for any other remark.
std::optional<Provenance> provenance_in(std::string_view note);

struct FleetCalibration {
  Provenance provenance;
  Calibration calibration;
};
// The usable calibrations with a provenance, oldest first.
std::vector<FleetCalibration> fleet_calibrations(const Store& store);
// The newest one of a type; null if there is none.
const FleetCalibration* newest_of(const std::vector<FleetCalibration>& all, std::string_view type);

}  // namespace memfathom
