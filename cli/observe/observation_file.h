// Observation files: measured runs of real jobs as CSV or JSON lines (docs/contract.md §6).
#pragma once

#include <filesystem>
#include <iosfwd>
#include <vector>

#include "core/sample.h"

namespace memfathom {

// Rows {"job": {...} or "path", "metric", "bytes" | "fits", "gpu", "driver", ...}; also those of
// `accuracy`, {"id", "job", "measured": {...}, "group"}. `defaults` fills unset fields, including
// the job; values of a single phase are skipped. CSV starts with a line of column names. Throws
// Error(kInput) with file and line, also for an unreadable job.
std::vector<Observation> read_observations(const std::filesystem::path& file,
                                           const Observation& defaults);
// The same from a stream; `file` says where it comes from, and where paths of jobs start.
std::vector<Observation> read_observations(std::istream& input, const std::filesystem::path& file,
                                           const Observation& defaults);

}  // namespace memfathom
