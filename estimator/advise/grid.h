// Grid: every combination of some alternatives, for tables such as offload x precision x batch.
#pragma once

#include <string>
#include <vector>

#include "estimator/job/job.h"
#include "estimator/job/patch.h"

namespace memfathom {

struct GridRow {
  std::vector<std::string> names;  // one for each column
  Patch patch;
};

struct Grid {
  std::vector<std::string> columns;  // "batch", "precision", "strategy"
  std::vector<GridRow> rows;         // the last dimension varies fastest
};

// A dimension lists its alternatives: "batch=4,2,1", "gpu=rtx-4090,a100-40gb", or strategies as
// `compare --strategies` takes them: "baseline,offload". Throws Error(kUsage), also for more than
// ten thousand combinations.
Grid make_grid(const std::vector<std::string>& dimensions, const Job& job);

}  // namespace memfathom
