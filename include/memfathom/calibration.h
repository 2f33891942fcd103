// CalibrationNote: which calibration an estimate used. A calibration holds what accounting alone
// cannot know (the CUDA context, library modules), measured on a GPU or fitted to published runs.
//
//     #include <memfathom/session.h>
//     #include <iostream>
//
//     void warn(const memfathom::Estimate& estimate) {
//       if (estimate.calibration.status == memfathom::CalibrationStatus::kNone)
//         std::cerr << "no calibration: documented defaults were used\n";
//     }
#pragma once

#include <memfathom/environment.h>

#include <optional>
#include <string>

namespace memfathom {
inline namespace v0 {

enum class CalibrationStatus {
  kCalibrated,  // made on this kind of GPU with these versions
  kStale,       // made on this kind of GPU with other versions
  kPublished,   // fitted to other people's measurements
  kNone,        // documented defaults
};

struct CalibrationNote {
  CalibrationStatus status = CalibrationStatus::kNone;
  std::string id, name;  // name: "a100-40gb/pytorch"
  std::string created;   // ISO 8601, UTC
  Environment environment;
  int samples = 0;
  std::optional<double> held_out_median_error;  // relative
};

}  // namespace v0
}  // namespace memfathom
