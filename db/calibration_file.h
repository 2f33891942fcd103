// Calibration files: one calibration as a JSON document for transfer between machines, and its id.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/calibration.h"

namespace memfathom {

// A calibration's content hash: 32 hexadecimal digits over all fields except `id`.
std::string content_id(const Calibration& calibration);

// Throws Error(kInput) if a number is not finite or the covariance is not a square matrix over the
// coefficients.
void require_storable(const Calibration& calibration);

// The document, `"schema": "memfathom.calibration/1"`, with the calibration's id.
std::string to_calibration_file(const Calibration& calibration);

// Reads it back. Throws Error(kInput), naming `where`, for another kind of document and for one
// whose id does not match its content. A document without an id gets one, so that users can write
// it by hand.
Calibration from_calibration_file(std::string_view text, const std::string& where);

// Writes one file per calibration to `folder`, which it creates, and returns their paths. Existing
// files are replaced atomically.
std::vector<std::filesystem::path> export_calibrations(const std::vector<Calibration>& calibrations,
                                                       const std::filesystem::path& folder);
Calibration read_calibration_file(const std::filesystem::path& path);

}  // namespace memfathom
