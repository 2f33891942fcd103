// SimulatedGpu: a simulated GPU with hidden truth, to see whether a fit finds it.
//
// Jobs are random traces replayed through the project's caching allocator. What the GPU adds, the
// fitter's equations do not contain: workspaces that jump between algorithms, library modules that
// grow with every new kind of call, readings in whole pages taken once a second, noise, gross
// outliers, samples that never arrive.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/workspace.h"
#include "fitter/rows.h"
#include "fitter/workspace_fit.h"

namespace memfathom::testing {

// A layer of a synthetic job: what it keeps, and which library it calls.
struct SyntheticLayer {
  enum class Kind { kElementwise, kLinear, kConvolution, kTransform };
  Kind kind = Kind::kElementwise;
  Bytes parameters;
  Bytes output;     // saved for backward
  Bytes temporary;  // lives during the call
  ConvolutionQuery convolution;
  FftQuery transform;
};

struct SyntheticJob {
  std::string family;
  std::vector<SyntheticLayer> layers;
  Bytes logits;
  double seconds_per_iteration = 1;
  int iterations = 5;
  double seconds_at_last_sample = 0;  // of the 1 Hz sampler
  // How many different kernels of cuBLAS, cuDNN and cuFFT the shapes of the job lead to.
  std::array<int, 3> kernels{1, 1, 1};
};

SyntheticJob random_job(std::mt19937_64& random);

struct Replay {
  ReplayedJob job;
  std::vector<Bytes> reserved_after;     // each iteration
  std::vector<WorkspaceRow> workspaces;  // as asked for
};
Replay replay(const SyntheticJob& job, const WorkspaceModel& workspaces);

// Terms that no fitter knows of, for the suite that expects to be told.
struct PlantedTerm {
  double leak_of_reserved = 0;  // a share of the reserved peak, held outside the allocator
  double bytes_per_layer = 0;
};

class SimulatedGpu {
 public:
  explicit SimulatedGpu(std::uint64_t seed, PlantedTerm planted = {});

  struct Truth {
    double context = 0;
    double cublas = 0;  // the median over jobs that use it: modules grow, they have no one size
    double cudnn = 0;
    double cufft = 0;
  };
  const Truth& truth() const { return truth_; }

  // One measured job; its replay is filled in by the caller's own workspace model.
  struct Reading {
    SyntheticJob job;
    Bytes measured;
    std::vector<WorkspaceRow> workspaces;
  };
  Reading measure(std::mt19937_64& random) const;

 private:
  class HiddenWorkspaces;

  double module_bytes(const SyntheticJob& job, SyntheticLayer::Kind kind) const;

  Truth full_;  // what a module weighs once everything in it is loaded
  Truth truth_;
  PlantedTerm planted_;
  double noise_bytes_ = 0;
  double noise_relative_ = 0;
  double workspace_factor_ = 1;
  Bytes workspace_cap_;
};

// Profiles `count` jobs (a tenth never arrives), fits the workspaces, replays the jobs with them
// and returns the rows.
struct Campaign {
  std::vector<FitRow> rows;
  WorkspaceFit workspaces;
};
Campaign profile(const SimulatedGpu& gpu, int count, std::uint64_t seed);

// Fills in the replay of each row with the workspace models of a calibration, as the cli does
// between the two stages.
FitRow row_of(const SimulatedGpu::Reading& reading, const WorkspaceModel& workspaces,
              const std::string& id);

}  // namespace memfathom::testing
