#include "estimator/answer/default_spread.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/coefficients.h"
#include "estimator/run/replayed_job.h"

namespace memfathom {
namespace {

// Measured over replayed bytes of published training runs whose stacks nobody calibrated: nine in
// ten lie between 0.94 and 1.21 (docs/accuracy.md). What a replay does not know (what a script
// keeps, loads, fragments) mostly adds.
constexpr double kNormalQuantile90 = 1.6449;  // of a normal distribution, in standard deviations
constexpr double kShareBelow = 0.06 / kNormalQuantile90;
constexpr double kShareAbove = 0.20 / kNormalQuantile90;

double standard_error(const Calibration* calibration, const LibraryConstant& constant) {
  if (calibration != nullptr) {
    for (const Coefficient& coefficient : calibration->coefficients) {
      if (coefficient.name == constant.name) return coefficient.standard_error;
    }
  }
  return default_of(constant, "pytorch").standard_error;
}

double variance_of_constants(const DryRun& run, const Calibration* calibration) {
  const ReplayedJob job = replayed(run);
  double variance = 0;
  for (const LibraryConstant& constant : kLibraryConstants) {
    if (constant.widens_intervals && applies_to(constant.condition, job))
      variance += std::pow(standard_error(calibration, constant), 2);
  }
  return variance;
}

double normal_below(double deviations) { return 0.5 * std::erfc(-deviations / std::sqrt(2.0)); }

// How many standard deviations either side hold `level` of a normal distribution.
double deviations_for(double level) {
  double low = 0;
  double high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (2 * normal_below(middle) - 1 < level ? low : high) = middle;
  }
  return high;
}

}  // namespace

bool ratios_apply_to(const Calibration& calibration, const Job& job, std::string_view group) {
  const RatioGroup* ratios = ratios_for(calibration, group);
  if (ratios == nullptr || ratios->ratios.empty()) return false;
  const auto is_sampled = [&](const RatioGroup& known) { return known.group == group; };
  if (calibration.source == Source::kPublished)
    return std::any_of(calibration.ratios.begin(), calibration.ratios.end(), is_sampled);
  if (job.training.mode != Mode::kTrain) return true;
  return std::any_of(
      calibration.ratios.begin(), calibration.ratios.end(), [](const RatioGroup& known) {
        return !known.group.empty() && known.group != kUnseenGroup &&
               known.group != kGenerationGroup && !known.group.ends_with(kInferenceGroup);
      });
}

DefaultSpread::DefaultSpread(const DryRun& run, const Calibration* calibration, Bytes device_peak)
    : middle_(static_cast<double>(device_peak.count())) {
  const double unsure = variance_of_constants(run, calibration) +
                        std::pow(static_cast<double>(run.reserved_uncertainty.count()), 2);
  const auto replayed = static_cast<double>(run.reserved_peak.count());
  below_ = std::sqrt(unsure + std::pow(kShareBelow * replayed, 2));
  above_ = std::sqrt(unsure + std::pow(kShareAbove * replayed, 2));
}

PredictionInterval DefaultSpread::interval(double level) const {
  const double deviations = deviations_for(level);
  return {clamped_bytes(middle_ - deviations * below_),
          clamped_bytes(middle_ + deviations * above_), level};
}

double DefaultSpread::probability_fits(Bytes available) const {
  const double room = static_cast<double>(available.count()) - middle_;
  return std::clamp(normal_below(room / (room < 0 ? below_ : above_)), 0.001, 0.999);
}

}  // namespace memfathom
