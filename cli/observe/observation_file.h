// Observation files: measured runs of real jobs as CSV or JSON lines (docs/contract.md §6).
#pragma once

#include <filesystem>
#include <vector>

#include "core/sample.h"

namespace memfathom {

// Rows {"job": {...} or "path", "metric", "bytes" | "fits", "gpu", "driver", ...}; also those of
// `accuracy`, {"id", "job", "measured": {...}, "group"}. What a row does not say is taken from
// `defaults`, the job too; a phase's figure is no total and is left out. CSV has a first line of
// column names. Throws Error(kInput) with file and line; jobs are read to be sure that they can be.
std::vector<Observation> read_observations(const std::filesystem::path& file,
                                           const Observation& defaults);

}  // namespace memfathom
