// Calibration files: one calibration as a JSON document that travels between machines, and its id.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/calibration.h"

namespace memfathom {

// The id of what a calibration says: 32 hexadecimal digits over all fields but `id` itself.
std::string content_id(const Calibration& calibration);

// Throws Error(kInput) when a number is not finite, or the covariance is not a square over the
// coefficients.
void require_storable(const Calibration& calibration);

// The document, `"schema": "memfathom.calibration/1"`, with the calibration's id.
std::string to_calibration_file(const Calibration& calibration);

// Reads it back. Throws Error(kInput), naming `where`, for a document of another kind, and for one
// that was changed after it was written: its id no longer fits. A document without an id gets one,
// so that people can write it by hand.
Calibration from_calibration_file(std::string_view text, const std::string& where);

// One file per calibration in `folder`, which is made; returns their paths. A file that is there is
// replaced only as a whole.
std::vector<std::filesystem::path> export_calibrations(const std::vector<Calibration>& calibrations,
                                                       const std::filesystem::path& folder);
Calibration read_calibration_file(const std::filesystem::path& path);

}  // namespace memfathom
