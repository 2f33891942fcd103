// JSON of the records exchanged between processes, files and the store. Reading what to_json writes
// gives an equal record.
//
// "Not measured" is null, never 0. A missing key keeps the record's default, so that older files
// stay readable; a key of the wrong type throws Error(kInput) with its name.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/calibration.h"
#include "core/environment.h"
#include "core/sample.h"

namespace memfathom {

nlohmann::json to_json(const Environment& environment);
nlohmann::json to_json(const Sample& sample);
nlohmann::json to_json(const Observation& observation);
nlohmann::json to_json(const Calibration& calibration);

Environment environment_from_json(const nlohmann::json& json);
Sample sample_from_json(const nlohmann::json& json);
Observation observation_from_json(const nlohmann::json& json);
Calibration calibration_from_json(const nlohmann::json& json);

}  // namespace memfathom
