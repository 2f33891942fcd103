// DatabaseCalibrations: the calibrations of a SQLite store and the embedded published ones.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/calibration_source.h"

namespace memfathom {

class DatabaseCalibrations : public CalibrationSource {
 public:
  // Reads the stores once. Without a path or a file there are no stored calibrations; those of
  // virtual devices are left out. `fleet` is a second store, which need not be writable; what both
  // have counts once.
  explicit DatabaseCalibrations(const std::optional<std::filesystem::path>& database,
                                const std::optional<std::filesystem::path>& fleet = std::nullopt);

  const std::vector<Calibration>& stored() const override { return stored_; }
  const std::vector<Calibration>& published() const override;
  std::string location() const override { return location_; }

 private:
  void add(const std::filesystem::path& database);

  std::string location_;
  std::vector<Calibration> stored_;
};

}  // namespace memfathom
