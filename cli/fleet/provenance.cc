#include "cli/fleet/provenance.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

namespace memfathom {

std::string to_note(const Provenance& provenance) {
  std::string note = "fleet";
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) note += fmt::format(" {}={}", key, value);
  };
  add("type", provenance.type);
  add("node", provenance.node);
  add("job", provenance.job);
  return note;
}

std::optional<Provenance> provenance_in(std::string_view note) {
  std::istringstream words{std::string(note)};
  std::string word;
  if (!(words >> word) || word != "fleet") return std::nullopt;
  Provenance provenance;
  while (words >> word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return std::nullopt;
    const std::string key = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    if (key == "type") provenance.type = value;
    if (key == "node") provenance.node = value;
    if (key == "job") provenance.job = value;
  }
  return provenance;
}

std::vector<FleetCalibration> fleet_calibrations(const Store& store) {
  std::map<std::string, Provenance> known;
  for (const Annotation& annotation : store.annotations("")) {
    if (std::optional<Provenance> provenance = provenance_in(annotation.note))
      known.insert_or_assign(annotation.subject, std::move(*provenance));
  }
  std::vector<FleetCalibration> found;
  for (Calibration& calibration : store.calibrations()) {
    const auto at = known.find(calibration.id);
    if (calibration.usable && at != known.end())
      found.push_back({at->second, std::move(calibration)});
  }
  return found;
}

const FleetCalibration* newest_of(const std::vector<FleetCalibration>& all, std::string_view type) {
  const FleetCalibration* newest = nullptr;
  for (const FleetCalibration& one : all) {
    if (one.provenance.type == type) newest = &one;
  }
  return newest;
}

}  // namespace memfathom
