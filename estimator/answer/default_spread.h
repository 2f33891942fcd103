// Default spread: how far a device total may be off where no measured ratio applies to the job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "core/calibration.h"
#include "core/interval.h"
#include "estimator/answer/estimate.h"
#include "estimator/run/dry_run.h"

namespace memfathom {

// Of the kinds of jobs (job_group()) those that do not train: these, and what ends in the latter.
inline constexpr std::string_view kGenerationGroup = "generation";
inline constexpr std::string_view kInferenceGroup = "inference";

// Whether the calibration's ratios say something about jobs of this kind. Ratios of inference alone
// say nothing about training: nothing in them comes from backward, step or repeated iterations.
// Published ratios apply to the kinds of jobs that ran: what scripts of another kind hold, load and
// fragment is not in them.
bool ratios_apply_to(const Calibration& calibration, const Job& job, std::string_view group);

// Measured over replayed bytes of published training runs whose stacks nobody calibrated: nine in
// ten lie between 0.94 and 1.20 (docs/accuracy.md). What a replay does not know (what a script
// keeps, loads, fragments) mostly adds.
inline constexpr ReplayShares kPublishedShares{0.06, 0.20};

// The distribution of the total: the replayed part errs by a share of itself to either side, the
// constants by the calibration's standard errors (null: the documented defaults'), two averaged
// replays by the distance to either of them; what lies outside the allocator has the reported
// deviations themselves (kOutsideGroup), whose upper tail is heavy.
class DefaultSpread {
 public:
  DefaultSpread(const DryRun& run, const Calibration* calibration, Bytes device_peak,
                const ReplayShares& shares = kPublishedShares, bool lengths_may_vary = true);

  PredictionInterval interval(double level) const;
  double probability_fits(Bytes available) const;
  const std::vector<SpreadPart>& parts() const { return parts_; }

 private:
  void add_part(const char* name, double below, double above, std::string text);
  // The distribution's value and slope.
  struct Below {
    double probability = 0, density = 0;
  };
  Below below(double total) const;
  double quantile(double share) const;

  double middle_;
  double below_ = 0, above_ = 0;    // standard deviations
  std::vector<double> deviations_;  // of what lies outside the allocator, in bytes; {0} if unknown
  std::vector<SpreadPart> parts_;
};

}  // namespace memfathom
