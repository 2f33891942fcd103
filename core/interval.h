// Interval: how far a device total may be off, read from a calibration's out-of-fold ratios
// measured / predicted, or of the same with an absolute part.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/bytes.h"
#include "core/calibration.h"

namespace memfathom {

// The group of ratios for jobs of a kind that no sample had: its ratios come from folds that left a
// whole family out.
inline constexpr std::string_view kUnseenGroup = "unseen";

// Which ratios speak for a job of `group`: the group's own when it has them; the group of all ("")
// when the group was sampled and did not differ (it is then listed without ratios) or when `group`
// is empty; else those of kUnseenGroup. Null when the calibration has no ratios at all.
const RatioGroup* ratios_for(const Calibration& calibration, std::string_view group);

// How far off a total may be grows with it, except below the calibration's knee (its coefficient
// "interval.knee", bytes), where an error is absolute: that of a constant nobody measured. A ratio
// is 1 + (measured - predicted) / error_scale: measured / predicted where there is no knee.
double error_scale(double predicted, double knee);
double scaled_ratio(double measured, double predicted, double knee);
inline constexpr std::string_view kKneeName = "interval.knee";

struct RatioInterval {
  double low = 1;
  double high = 1;
  double level = 0;  // the coverage that so many ratios can promise; below what was asked for when
                     // they are too few
};

// The split-conformal interval of one further ratio: order statistics (n + 1) * (1 -+ level) / 2 of
// `sorted`, moved outwards to whole numbers. Too few ratios give the extremes, and a level of (n -
// 1) / (n + 1).
RatioInterval ratio_interval(std::span<const double> sorted, double level);

// The probability that one further ratio is at most `limit`; never 0 or 1, which no finite sample
// can promise.
double probability_below(std::span<const double> sorted, double limit);

// What an interval's end is as bytes: never below 0, never more than Bytes can hold.
Bytes clamped_bytes(double bytes);

struct PredictionInterval {
  Bytes low;
  Bytes high;
  double level = 0;
};

// The interval of the device total; `predicted` itself with level 0 when the calibration has no
// ratios.
PredictionInterval prediction_interval(const Calibration& calibration, std::string_view group,
                                       Bytes predicted, double level);

// The probability that a job predicted to take `predicted` stays within `available`; empty without
// ratios.
std::optional<double> probability_fits(const Calibration& calibration, std::string_view group,
                                       Bytes predicted, Bytes available);

}  // namespace memfathom
