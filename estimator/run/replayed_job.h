// ReplayedJob of a dry run: what the predictor needs of it.
#pragma once

#include "core/predictor.h"
#include "estimator/run/dry_run.h"

namespace memfathom {

ReplayedJob replayed(const DryRun& run);

}  // namespace memfathom
