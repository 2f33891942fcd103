// Published calibrations: the embedded defaults (db/published), for machines without a calibration.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/calibration.h"

namespace memfathom {

// Parsed on the first call. Their source is kPublished or kDefault, never kMeasured.
const std::vector<Calibration>& published_calibrations();

// By name ("a100-40gb/pytorch") or id; nullopt if there is none.
std::optional<Calibration> find_published_calibration(std::string_view name_or_id);

}  // namespace memfathom
