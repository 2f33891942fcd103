// Fit of collectives: coefficients of what communicators hold, from samples of several ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/calibration.h"

namespace memfathom {

// One sample: how much each stage added outside the allocator, of the rank that took most.
struct CollectivesRow {
  int ranks = 2;
  std::optional<int> channels;  // absent: NCCL chose them
  Bytes communicator;           // the first one
  Bytes second_communicator;
  std::optional<Bytes> ddp, fsdp;  // absent: not measured
};

struct CollectivesFit {
  // Empty without rows in which NCCL chose the channels. A coefficient that the rows do not
  // determine (one number of ranks, one number of channels) is left out and named in `notes`.
  std::vector<Coefficient> coefficients;
  std::vector<std::string> notes;
};

// Least squares; the standard errors are the larger of the residuals' and of `quantum`, the step of
// the readings. Fewer than three rows say nothing about their scatter: that of published figures is
// taken.
CollectivesFit fit_collectives(const std::vector<CollectivesRow>& rows, Bytes quantum);

// Adds coefficients of another fit, which are independent of those of the calibration.
void append_coefficients(std::vector<Coefficient> added, Calibration& calibration);

}  // namespace memfathom
