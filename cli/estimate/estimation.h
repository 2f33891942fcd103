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
#include "cli/estimate/live_card.h"
#include "core/calibration.h"
#include "core/workspace.h"
#include "estimator/advise/answers.h"
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
  AnswerJob for_search() const;
  // As it would run on that very card: where the card is full, the allocator gives its cache back.
  // It runs, but slowly, so nobody should be advised to it.
  Estimate answer_as_run(const Job& job, bool explains = false) const;
  DryRun dry_run(const Job& job) const;
  // What is alive from allocation to allocation, as answer() counts it.
  Timeline timeline(const Job& job) const;
  // The card in this machine that a job is for: that of target.device; the first one, where no
  // target is named at all; else null. Asked once.
  const LiveCard* live_target(const Job& job) const;
  // Throws what a job with this target.calibration would be refused with.
  void require_calibration(const std::string& word) const;

 private:
  struct Chosen {
    std::optional<Calibration> calibration;
    CalibrationStatus status = CalibrationStatus::kNone;
    std::string stale;  // what differs from where the job runs; empty when nothing does
  };
  bool knows_architecture(const Job& job) const;
  int capability_of(const Job& job) const;
  Chosen choose_calibration(const Job& job) const;
  // The newest one made on such a card, else a published one of it, else the documented defaults.
  Chosen best_match(const std::string& card, const std::string& framework) const;
  // The one that `word` stands for (db/lookup.h), among usable and published ones.
  Chosen named_calibration(const std::string& word) const;
  // `table`: the fitted answers of one version; null: the installed cuDNN's.
  const WorkspaceModel* workspaces_for(int capability, const std::string& torch_version,
                                       const FittedTable* table) const;
  // `options`: memory, ceiling and timeline; what the stack decides is filled in.
  DryRun run(const Job& job, const Chosen& chosen, DryRunOptions options = {}) const;
  // On a card without limits; where even addresses end, Error(kInput). OutOfMemory above the
  // ceiling.
  DryRun run_anywhere(const Job& job, const Chosen& chosen, std::optional<Bytes> ceiling) const;
  struct Question {
    bool explains = false;
    bool as_run = false;
    std::optional<Bytes> ceiling;
  };
  Estimate answer(const Job& given, const Question& question) const;

  std::filesystem::path database_;
  std::vector<Calibration> stored_;  // usable ones, oldest first
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<WorkspaceModel>>
      models_;                                                   // by architecture and version
  mutable std::map<std::string, Chosen> chosen_;                 // by target
  mutable std::map<std::string, std::optional<LiveCard>> live_;  // by device; "": the first
};

// Whether --strict leaves the answer open: tight, or nothing is calibrated.
bool is_undecided(const Estimate& estimate);

}  // namespace memfathom
