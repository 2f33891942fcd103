// Interval: the error range of a device total, from a calibration's out-of-fold ratios measured /
// predicted, optionally with an absolute part.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/bytes.h"
#include "core/calibration.h"

namespace memfathom {

// The group of ratios for kinds of jobs without samples: its ratios come from folds that held out a
// whole family.
inline constexpr std::string_view kUnseenGroup = "unseen";

// The group of a calibration whose ratios are not those of jobs but of what processes hold outside
// the allocator (core/outside_allocator.h): reported / predicted.
inline constexpr std::string_view kOutsideGroup = "outside";

// The ratios that apply to a job of `group`: the group's own if it has any; those of all samples
// ("") if `group` is empty or is listed without ratios, because it was sampled and did not differ;
// else those of kUnseenGroup. Null if the calibration has no ratios.
const RatioGroup* ratios_for(const Calibration& calibration, std::string_view group);

// The error of a total is proportional to it, except below the calibration's knee (coefficient
// "interval.knee", bytes), where an unmeasured constant makes it absolute. A ratio is 1 + (measured
// - predicted) / error_scale: measured / predicted without a knee.
double error_scale(double predicted, double knee);
double scaled_ratio(double measured, double predicted, double knee);
inline constexpr std::string_view kKneeName = "interval.knee";

struct RatioInterval {
  double low = 1;
  double high = 1;
  double level =
      0;  // the coverage this many ratios support; below the requested level if they are too few
};

// The split-conformal interval of one further ratio: order statistics (n + 1) * (1 -+ level) / 2 of
// `sorted`, rounded outwards. Too few ratios give the extremes and a level of (n - 1) / (n + 1).
RatioInterval ratio_interval(std::span<const double> sorted, double level);

// The probability that one further ratio is at most `limit`; never 0 or 1, which a finite sample
// cannot support.
double probability_below(std::span<const double> sorted, double limit);

// An interval's end in bytes, clamped to [0, the largest Bytes].
Bytes clamped_bytes(double bytes);

struct PredictionInterval {
  Bytes low;
  Bytes high;
  double level = 0;
};

// The interval of the device total; `predicted` itself with level 0 if the calibration has no
// ratios.
PredictionInterval prediction_interval(const Calibration& calibration, std::string_view group,
                                       Bytes predicted, double level);

// The probability that a job predicted to use `predicted` stays within `available`; nullopt without
// ratios.
std::optional<double> probability_fits(const Calibration& calibration, std::string_view group,
                                       Bytes predicted, Bytes available);

}  // namespace memfathom
