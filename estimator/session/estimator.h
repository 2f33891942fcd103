// Estimator: answers about jobs. It chooses the calibration and the library versions of a job's
// stack, runs the job on the dry device and turns the run into an Estimate.
//
// The calibrations, the machine's GPUs and the library workspaces are handed in;
// api/local_session.h wires the real ones. All methods may be called from several threads.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "core/calibration_source.h"
#include "core/live_gpu.h"
#include "core/workspace_source.h"
#include "estimator/advise/estimate_cache.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/job.h"
#include "estimator/run/dry_run.h"
#include "estimator/session/calibration_choice.h"

namespace memfathom {

class Estimator {
 public:
  // All three must outlive this.
  Estimator(const CalibrationSource& calibrations, const GpuInventory& gpus,
            const WorkspaceSource& workspaces);

  Estimate estimate(const Job& job, bool explains = false) const;
  // As the job would run on the target: where the GPU is full, the allocator releases its cache and
  // goes on. That works but is slow, so searches for a configuration use estimate().
  Estimate estimate_as_run(const Job& job, bool explains = false) const;
  // estimate_as_run() with other intervals; `study` says which.
  Estimate estimate_for_study(const Job& job, const IntervalStudy& study) const;
  // estimate() for a search; this must outlive it.
  EstimateFunction search_function() const;
  DryRun dry_run(const Job& job) const;
  // What is alive at each allocation, as estimate() counts it.
  Timeline timeline(const Job& job) const;
  // Every allocation and free of that replay; a recorded step is returned as it was recorded.
  // Throws Error(kUsage) for a pipeline, whose stages have a history each.
  Trace history(const Job& job) const;
  // The GPU of this machine that a job targets: target.device; the first one if the job names no
  // target at all; else null. Queried once.
  const LiveGpu* live_target(const Job& job) const;
  // Throws the Error(kInput) that a job with this target.calibration would get.
  void require_calibration(const std::string& wanted) const { chooser_.require(wanted); }

 private:
  struct AnswerOptions {
    bool explains = false;
    bool as_run = false;
    std::optional<Bytes> ceiling;
    const IntervalStudy* study = nullptr;
  };
  Estimate answer(const Job& given, const AnswerOptions& options) const;
  CalibrationChoice choose_calibration(const Job& job) const;
  bool has_known_architecture(const Job& job) const;
  int capability_of(const Job& job) const;
  // `options`: memory, ceiling, timeline and history; the stack's settings are filled in.
  DryRun run(const Job& job, const CalibrationChoice& choice, DryRunOptions options = {}) const;
  // On a GPU without limits. Throws OutOfMemory above the ceiling, Error(kInput) where addresses
  // end.
  DryRun run_unlimited(const Job& job, const CalibrationChoice& choice,
                       std::optional<Bytes> ceiling) const;
  // The same job with a multiple of its tensors as the limit of a cache that grows with every
  // token: such a cache fits no block that was freed, so without a limit the allocator would keep
  // them all.
  DryRun run_with_bounded_cache(const Job& job, const CalibrationChoice& choice,
                                const DryRun& unlimited) const;
  // As run_unlimited(), with a bounded cache where the job generates and does not fit without.
  DryRun run_comfortably(const Job& job, const CalibrationChoice& choice,
                         std::optional<Bytes> ceiling) const;
  // Where the job fits only if the allocator gives its cache back: the estimate of that run.
  std::optional<Estimate> estimate_in_full_gpu(const Job& job, const CalibrationChoice& choice,
                                               const Estimate& unlimited,
                                               EstimateContext context) const;

  CalibrationChooser chooser_;
  const GpuInventory& gpus_;
  const WorkspaceSource& workspaces_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::optional<LiveGpu>> live_;  // by device; "": the first
};

// Whether --strict leaves the answer open: the verdict is tight, or nothing is calibrated.
bool is_undecided(const Estimate& estimate);

// The job with the live GPU's name, capacity and memory in use where the job leaves them
// unspecified.
Job with_live_gpu(const LiveGpu& gpu, Job job);

}  // namespace memfathom
