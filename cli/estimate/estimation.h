// Estimation: where jobs, calibrations and library workspaces meet, for every command that answers
// about a job.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/estimate/live_gpu.h"
#include "core/calibration.h"
#include "core/workspace.h"
#include "estimator/advise/estimate_cache.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/job.h"
#include "kernels/workspaces/fitted_table.h"

namespace memfathom {

// Answers may be asked for from several threads.
class Estimation {
 public:
  explicit Estimation(const Context& context);
  ~Estimation();

  Estimate answer(const Job& job, bool explains = false) const;
  // answer() for a search; this must outlive it.
  EstimateFunction search_function() const;
  // As it would run on that very GPU: where the GPU is full, the allocator gives its cache back.
  // It runs, but slowly, so nobody should be advised to it.
  Estimate estimate_as_run(const Job& job, bool explains = false) const;
  DryRun dry_run(const Job& job) const;
  // What is alive from allocation to allocation, as answer() counts it.
  Timeline timeline(const Job& job) const;
  // The GPU in this machine that a job is for: that of target.device; the first one, where no
  // target is named at all; else null. Asked once.
  const LiveGpu* live_target(const Job& job) const;
  // Throws what a job with this target.calibration would be refused with.
  void require_calibration(const std::string& word) const;

 private:
  struct CalibrationChoice {
    std::optional<Calibration> calibration;
    CalibrationStatus status = CalibrationStatus::kNone;
    std::string stale;  // what differs from where the job runs; empty when nothing does
  };
  bool has_known_architecture(const Job& job) const;
  int capability_of(const Job& job) const;
  CalibrationChoice choose_calibration(const Job& job) const;
  // The newest one made on such a GPU, else a published one of it, else the documented defaults.
  CalibrationChoice best_match(const std::string& gpu, const std::string& framework) const;
  // The one that `word` stands for (db/lookup.h), among usable and published ones.
  CalibrationChoice named_calibration(const std::string& word) const;
  // `table`: the fitted answers of one version; null: the installed cuDNN's.
  const WorkspaceModel* workspaces_for(int capability, const std::string& torch_version,
                                       const FittedTable* table) const;
  // `options`: memory, ceiling and timeline; what the stack decides is filled in.
  DryRun run(const Job& job, const CalibrationChoice& chosen, DryRunOptions options = {}) const;
  // On a GPU without limits; where even addresses end, Error(kInput). OutOfMemory above the
  // ceiling.
  DryRun run_unlimited(const Job& job, const CalibrationChoice& chosen,
                       std::optional<Bytes> ceiling) const;
  struct AnswerOptions {
    bool explains = false;
    bool as_run = false;
    std::optional<Bytes> ceiling;
  };
  Estimate answer(const Job& given, const AnswerOptions& question) const;

  std::filesystem::path database_;
  std::vector<Calibration> stored_;  // usable ones, oldest first
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<WorkspaceModel>>
      models_;                                                  // by architecture and version
  mutable std::map<std::string, CalibrationChoice> chosen_;     // by target
  mutable std::map<std::string, std::optional<LiveGpu>> live_;  // by device; "": the first
};

// Whether --strict leaves the answer open: tight, or nothing is calibrated.
bool is_undecided(const Estimate& estimate);

}  // namespace memfathom
