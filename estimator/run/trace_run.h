// Trace run: a recorded step (docs/contract.md §5) replayed instead of a model being built.
#pragma once

#include "estimator/run/dry_run.h"

namespace memfathom {

// `model.trace` is a path, relative to the file that names it or to the working directory.
DryRun run_trace(const Job& job, const DryRunOptions& options);

}  // namespace memfathom
