#include "db/published.h"

#include "db/calibration_file.h"
#include "db/embedded.h"

namespace memfathom {

const std::vector<Calibration>& published_calibrations() {
  static const std::vector<Calibration> all = [] {
    std::vector<Calibration> parsed;
    for (const EmbeddedFile& file : published_files()) {
      parsed.push_back(from_calibration_file(file.text, std::string(file.name)));
    }
    return parsed;
  }();
  return all;
}

std::optional<Calibration> find_published_calibration(std::string_view name_or_id) {
  for (const Calibration& calibration : published_calibrations()) {
    if (calibration.name == name_or_id || calibration.id == name_or_id) return calibration;
  }
  return std::nullopt;
}

}  // namespace memfathom
