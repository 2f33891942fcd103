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
  std::vector<std::string> notes;    // a sentence each: what the replay had to assume
  WorkspaceFit workspaces;
  int failed = 0;  // samples of other statuses
};

// All samples of exactly this environment. Where the libraries can be asked (the cpu's, and cuDNN
// for PyTorch, whose requests nobody sees) the replay asks them; else it uses models fitted to the
// recorded requests.
FitInput fit_input(const Store& store, const Environment& environment, const FitOptions& options);

// What calibrations of this device are named after: its name in `memfathom gpus`, so that estimates
// for that GPU find them; "cpu"; else what the driver calls it.
std::string calibration_gpu_name(const Environment& environment);

// The options of a fit of this device's samples.
FitOptions fit_options(const Environment& environment);

}  // namespace memfathom
