#include "db/database_calibrations.h"

#include <algorithm>
#include <utility>

#include "db/published.h"
#include "db/store.h"

namespace memfathom {

DatabaseCalibrations::DatabaseCalibrations(const std::optional<std::filesystem::path>& database,
                                           const std::optional<std::filesystem::path>& fleet)
    : location_(database ? database->string() : "(none)") {
  if (database) add(*database);
  if (!fleet) return;
  add(*fleet);
  location_ += " and " + fleet->string();
  std::stable_sort(stored_.begin(), stored_.end(), [](const Calibration& a, const Calibration& b) {
    return a.created < b.created;
  });
}

void DatabaseCalibrations::add(const std::filesystem::path& database) {
  const std::optional<Store> store = Store::open_if_exists(database);
  if (!store) return;
  for (Calibration& calibration : store->calibrations()) {
    const bool known = std::any_of(stored_.begin(), stored_.end(), [&](const Calibration& other) {
      return other.id == calibration.id;
    });
    if (calibration.usable && !calibration.environment.is_virtual() && !known)
      stored_.push_back(std::move(calibration));
  }
}

const std::vector<Calibration>& DatabaseCalibrations::published() const {
  return published_calibrations();
}

}  // namespace memfathom
