#include "db/database_calibrations.h"

#include <utility>

#include "db/published.h"
#include "db/store.h"

namespace memfathom {

DatabaseCalibrations::DatabaseCalibrations(const std::optional<std::filesystem::path>& database)
    : location_(database ? database->string() : "(none)") {
  if (!database) return;
  const std::optional<Store> store = Store::open_if_exists(*database);
  if (!store) return;
  for (Calibration& calibration : store->calibrations()) {
    if (calibration.usable && !calibration.environment.is_virtual())
      stored_.push_back(std::move(calibration));
  }
}

const std::vector<Calibration>& DatabaseCalibrations::published() const {
  return published_calibrations();
}

}  // namespace memfathom
