#include "estimator/answer/default_spread.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>

#include "core/coefficients.h"
#include "estimator/run/replayed_job.h"

namespace memfathom {
namespace {

constexpr double kNormalQuantile90 = 1.6449;  // of a normal distribution, in standard deviations

// Reserved over replayed bytes of 36 published fine-tuning runs whose lengths vary, replayed at
// their greatest length: 31 lie below 1.8 (docs/accuracy.md). With either reading equally
// likely, nine in ten runs do.
constexpr double kShareOfLengths = 0.8;

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

// Standard deviations beyond which a normal distribution has nothing left to tell apart.
constexpr double kFarthest = 8;

double normal_below(double deviations) { return 0.5 * std::erfc(-deviations / std::sqrt(2.0)); }

// Reported minus predicted bytes outside the allocator.
std::vector<double> outside_deviations(const Calibration* calibration) {
  if (calibration == nullptr) return {0};
  const double predicted = calibration->value_of(kLibraryConstants[kContext].name, 0);
  const double scale = error_scale(predicted, calibration->value_of(kKneeName, 0));
  for (const RatioGroup& group : calibration->ratios) {
    if (group.group != kOutsideGroup || group.ratios.empty()) continue;
    std::vector<double> deviations;
    for (const double ratio : group.ratios) deviations.push_back((ratio - 1) * scale);
    return deviations;
  }
  return {0};
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

DefaultSpread::DefaultSpread(const DryRun& run, const Calibration* calibration, Bytes device_peak,
                             const ReplayShares& shares, bool lengths_may_vary)
    : middle_(static_cast<double>(device_peak.count())),
      deviations_(outside_deviations(calibration)) {
  const double replayed = static_cast<double>(run.reserved_peak.count()) / kNormalQuantile90;
  add_part("replay", shares.below * replayed, shares.above * replayed,
           "memory that real scripts use beyond the replay (references, loading, fragmentation), "
           "from published runs");
  const double constants = std::sqrt(variance_of_constants(run, calibration));
  add_part("constants", constants, constants,
           "the constants of this GPU and stack are not measured");
  const auto unsure = static_cast<double>(run.reserved_uncertainty.count());
  add_part("workspaces", unsure, unsure, "two replays with different cuDNN workspaces disagree");
  if (run.lengths_unspecified && lengths_may_vary) {
    add_part("lengths", 0, kShareOfLengths * replayed,
             "sequence lengths are unspecified; if they vary, more is reserved");
  }
  if (deviations_.size() > 1) {
    const auto count = static_cast<double>(deviations_.size());
    const auto at = [&](double share) {
      return deviations_[static_cast<std::size_t>(share * (count - 1))];
    };
    parts_.push_back({"outside", clamped_bytes(-at(0.05)), clamped_bytes(at(0.95)),
                      "spread of the memory reported outside the allocator on comparable stacks"});
  }
}

void DefaultSpread::add_part(const char* name, double below, double above, std::string text) {
  if (below <= 0 && above <= 0) return;
  below_ = std::hypot(below_, below);
  above_ = std::hypot(above_, above);
  parts_.push_back({name, clamped_bytes(kNormalQuantile90 * below),
                    clamped_bytes(kNormalQuantile90 * above), std::move(text)});
}

DefaultSpread::Below DefaultSpread::below(double total) const {
  const double density_scale = std::sqrt(2.0 * std::numbers::pi);
  Below sum;
  for (const double deviation : deviations_) {
    const double room = total - middle_ - deviation;
    const double side = room < 0 ? below_ : above_;
    if (std::abs(room) < kFarthest * side) {
      const double z = room / side;
      sum.probability += normal_below(z);
      sum.density += std::exp(-z * z / 2) / (side * density_scale);
    } else {
      sum.probability += room < 0 ? 0.0 : 1.0;
    }
  }
  const auto count = static_cast<double>(deviations_.size());
  return {sum.probability / count, sum.density / count};
}

// Newton's steps, halvings where they leave the bracket or crawl.
double DefaultSpread::quantile(double share) const {
  constexpr double kCloseEnough = 1e-3;  // of a byte
  constexpr int kMostSteps = 96;
  double low = middle_ + deviations_.front() - kFarthest * below_;
  double high = middle_ + deviations_.back() + kFarthest * above_;
  double at = middle_;
  double last_step = high - low;
  for (int i = 0; i < kMostSteps && high - low > kCloseEnough; ++i) {
    const Below here = below(at);
    (here.probability < share ? low : high) = at;
    const double newton = at - (here.probability - share) / here.density;
    const bool is_useful =
        newton > low && newton < high && std::abs(newton - at) < std::abs(last_step) / 2;
    const double next = is_useful ? newton : (low + high) / 2;
    last_step = next - at;
    at = next;
    if (is_useful && std::abs(last_step) < kCloseEnough) break;
  }
  return at;
}

PredictionInterval DefaultSpread::interval(double level) const {
  return {clamped_bytes(quantile((1 - level) / 2)), clamped_bytes(quantile((1 + level) / 2)),
          level};
}

double DefaultSpread::probability_fits(Bytes available) const {
  return std::clamp(below(static_cast<double>(available.count())).probability, 0.001, 0.999);
}

}  // namespace memfathom
