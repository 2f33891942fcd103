// Fit rows: stored samples replayed dry, ready for the fitter. The cli alone knows samples, jobs
// and fits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/environment.h"
#include "core/workspace.h"
#include "db/store.h"
#include "fitter/fit.h"

namespace memfathom {

struct FitInput {
  std::vector<FitRow> rows;          // one per distinct job: its newest good sample
  std::vector<std::string> skipped;  // a sentence each: samples that could not be replayed
  WorkspaceFit workspaces;
  int failed = 0;  // samples of other statuses
};

// All samples of exactly this environment. Where the libraries can be asked (cpu) the replay asks
// them; else it uses models fitted to the recorded requests.
FitInput fit_input(const Store& store, const Environment& environment, const FitOptions& options);

// The options of a fit of our own samples on this device.
FitOptions fit_options(const Environment& environment);

}  // namespace memfathom
