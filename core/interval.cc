#include "core/interval.h"

#include <algorithm>
#include <cmath>

namespace memfathom {
namespace {

double scale_in(const Calibration& calibration, Bytes predicted) {
  return error_scale(static_cast<double>(predicted.count()), calibration.value_of(kKneeName, 0));
}

const RatioGroup* find_group(const Calibration& calibration, std::string_view group) {
  for (const RatioGroup& candidate : calibration.ratios) {
    if (candidate.group == group) return &candidate;
  }
  return nullptr;
}

}  // namespace

Bytes clamped_bytes(double bytes) {
  constexpr double kLargest = 9.0e18;  // just below the largest int64
  return Bytes{static_cast<std::int64_t>(std::clamp(bytes, 0.0, kLargest))};
}

double error_scale(double predicted, double knee) { return std::hypot(predicted, knee); }

double scaled_ratio(double measured, double predicted, double knee) {
  return 1 + (measured - predicted) / error_scale(predicted, knee);
}

const RatioGroup* ratios_for(const Calibration& calibration, std::string_view group) {
  const RatioGroup* all = find_group(calibration, "");
  if (group.empty()) return all;
  if (const RatioGroup* own = find_group(calibration, group))
    return own->ratios.empty() ? all : own;
  const RatioGroup* unseen = find_group(calibration, kUnseenGroup);
  return unseen != nullptr && !unseen->ratios.empty() ? unseen : all;
}

RatioInterval ratio_interval(std::span<const double> sorted, double level) {
  if (sorted.empty()) return {};
  const auto n = static_cast<std::ptrdiff_t>(sorted.size());
  const double tail = (static_cast<double>(n) + 1) * (1 - level) / 2;
  // The tolerance keeps 19 ratios sufficient for 90 % despite rounding in (1 - level) / 2.
  const auto low = static_cast<std::ptrdiff_t>(std::floor(tail + 1e-9));
  if (low < 1) {
    return {sorted.front(), sorted.back(), static_cast<double>(n - 1) / static_cast<double>(n + 1)};
  }
  return {sorted[static_cast<std::size_t>(low - 1)], sorted[static_cast<std::size_t>(n - low)],
          level};
}

double probability_below(std::span<const double> sorted, double limit) {
  const auto below = std::upper_bound(sorted.begin(), sorted.end(), limit) - sorted.begin();
  return (static_cast<double>(below) + 0.5) / (static_cast<double>(sorted.size()) + 1);
}

PredictionInterval prediction_interval(const Calibration& calibration, std::string_view group,
                                       Bytes predicted, double level) {
  const RatioGroup* ratios = ratios_for(calibration, group);
  if (ratios == nullptr || ratios->ratios.empty()) return {predicted, predicted, 0};
  const RatioInterval interval = ratio_interval(ratios->ratios, level);
  const auto centre = static_cast<double>(predicted.count());
  const double scale = scale_in(calibration, predicted);
  return {clamped_bytes(centre + (interval.low - 1) * scale),
          clamped_bytes(centre + (interval.high - 1) * scale), interval.level};
}

std::optional<double> probability_fits(const Calibration& calibration, std::string_view group,
                                       Bytes predicted, Bytes available) {
  const RatioGroup* ratios = ratios_for(calibration, group);
  if (ratios == nullptr || ratios->ratios.empty() || predicted.count() <= 0) return std::nullopt;
  const double limit =
      1 + static_cast<double>((available - predicted).count()) / scale_in(calibration, predicted);
  return probability_below(ratios->ratios, limit);
}

}  // namespace memfathom
