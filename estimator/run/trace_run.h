// Trace run: a recorded step (docs/contract.md §5) replayed instead of a model being built.
#pragma once

#include "estimator/run/dry_run.h"

namespace memfathom {

// Of a job whose model is a trace.
DryRun run_trace(const Job& job, const DryRunOptions& options);

}  // namespace memfathom
