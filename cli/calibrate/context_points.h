// Context points: a CSV file of what processes were reported to hold outside PyTorch's allocator.
#pragma once

#include <string>
#include <vector>

#include "fitter/outside_fit.h"

namespace memfathom {

struct ContextPoints {
  std::vector<OutsidePoint> points;
  std::vector<std::string> skipped;  // "file:line: why", of rows that no model can use
};

// Columns gpu, arch, sms, torch, lazy, touched, kind, mib and quality; others are not read. Throws
// Error(kInput) with file and line.
ContextPoints read_context_points(const std::string& file);

}  // namespace memfathom
