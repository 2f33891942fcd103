// Default spread: how far a device total may be off where no measured ratio speaks for the job.
#pragma once

#include <string_view>

#include "core/bytes.h"
#include "core/calibration.h"
#include "core/interval.h"
#include "estimator/run/dry_run.h"

namespace memfathom {

// Of the kinds of jobs (job_group()) those that do not train: these, and what ends in the latter.
inline constexpr std::string_view kGenerationGroup = "generation";
inline constexpr std::string_view kInferenceGroup = "inference";

// Whether the calibration's ratios say something about jobs of this kind. Ratios of inference alone
// say nothing about training: nothing in them comes from backward, step or repeated iterations.
// Other people's ratios speak for the kinds of jobs they ran: what scripts of another kind hold,
// load and fragment is not in them.
bool ratios_apply_to(const Calibration& calibration, const Job& job, std::string_view group);

// The total as a middle with a normal tail on each side. The constants' standard errors are the
// calibration's (null: the documented defaults'); the replayed part errs by a share of itself, and
// where two replays were averaged by the way to either of them.
class DefaultSpread {
 public:
  DefaultSpread(const DryRun& run, const Calibration* calibration, Bytes device_peak);

  PredictionInterval interval(double level) const;
  double probability_fits(Bytes available) const;

 private:
  double middle_;
  double below_, above_;  // standard deviations
};

}  // namespace memfathom
