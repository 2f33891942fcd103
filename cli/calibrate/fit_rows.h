// Fit rows: replays stored samples for the fitter. Only the CLI depends on samples, jobs and fits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/environment.h"
#include "core/workspace.h"
#include "db/store.h"
#include "fitter/collectives_fit.h"
#include "fitter/fit.h"

namespace memfathom {

struct FitInput {
  std::vector<FitRow> rows;          // one per distinct job: its newest good sample
  std::vector<std::string> skipped;  // a sentence each: samples that could not be replayed
  std::vector<std::string> notes;    // a sentence each: assumptions of the replay
  WorkspaceFit workspaces;
  std::vector<CollectivesRow> collectives;  // of the samples of several ranks
  int failed = 0;                           // samples of other statuses
};

// All samples of exactly this environment. The replay queries the libraries where possible (those
// of the CPU, and cuDNN for PyTorch, whose requests are not recorded); otherwise it uses models
// fitted to the recorded requests. The cuDNN that is asked is the one PyTorch loaded in the newest
// run; where that is not known or no longer there, the system's, and a note says so.
FitInput fit_input(const Store& store, const Environment& environment, const FitOptions& options);

// What cuDNN asks for where PyTorch ran in this environment: the library in `cudnn_directory`
// (empty: the system's), planned for its architecture. Assumptions are added to `notes`.
std::unique_ptr<WorkspaceModel> pytorch_workspaces(const Environment& environment,
                                                   const std::string& cudnn_directory,
                                                   std::vector<std::string>& notes);

// The device part of a calibration's name: the name in `memfathom gpus`, so that estimates find it;
// "cpu"; or the driver's name.
std::string calibration_gpu_name(const Environment& environment);

// Fit options for this device's samples.
FitOptions fit_options(const Environment& environment);

}  // namespace memfathom
