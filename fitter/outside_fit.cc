#include "fitter/outside_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "core/error.h"
#include "core/interval.h"
#include "core/quantile.h"
#include "fitter/mixed_model.h"

namespace memfathom {
namespace {

constexpr double kMiB = 1 << 20;
constexpr std::size_t kMinLazyPoints = 12;
// Residuals are kept as ratios that are absolute below this size (core/interval.h): what a process
// holds in addition does not grow with the GPU.
constexpr double kResidualKnee = 1024 * kMiB;
constexpr double kRounding = 10 * kMiB;  // of the figures in messages
constexpr double kRelativeNoise = 0.03;
constexpr double kGuessedNoise = 3;  // times the noise where the GPU is a guess
constexpr double kEagerNoise = 100 * kMiB;
constexpr double kNcclNoise = 50 * kMiB;
// cuDNN's kernels in the wheels of 1.13.1: 206 to 335 MiB by architecture
// (../shared/facts/context.md).
constexpr MixedPrior kEagerCudnn{280 * kMiB, 60 * kMiB};

// Architectures, the first kind of group, mostly agree; one of them (sm_90) keeps a tenth more.
constexpr std::size_t kHeavyTailed = 1;

using Points = std::vector<const OutsidePoint*>;
using Predictor = std::function<double(const OutsidePoint&)>;

std::string gpu_of(const OutsidePoint& point) {
  return fmt::format("{}, {} multiprocessors", point.target.architecture,
                     point.target.multiprocessors);
}

MixedRow lazy_row(const OutsidePoint& point) {
  const double threads = point.target.kilothreads;
  const double computed = point.stage == OutsideStage::kBare ? 0 : 1;
  const double size = outside::typical_bytes(threads);
  const double noise = std::hypot(kRounding, kRelativeNoise * size);
  return {{1, threads, computed, computed * threads},
          {point.target.architecture, gpu_of(point), point.target.release},
          size,
          point.bytes,
          point.is_guess ? kGuessedNoise * noise : noise};
}

// What a module adds to the prediction without it.
MixedRow increment_row(const OutsidePoint& point, double without, double noise) {
  MixedRow row;
  row.terms = {1, point.used_cudnn ? 1.0 : 0.0};
  row.groups = {point.target.architecture};
  row.value = point.bytes - without;
  row.noise = point.is_guess ? kGuessedNoise * noise : noise;
  return row;
}

struct Models {
  MixedFit lazy, eager, nccl;

  double bare(const OutsidePoint& point) const {
    return lazy.coefficients[0] + lazy.coefficients[1] * point.target.kilothreads;
  }
  double predict(const OutsidePoint& point) const {
    if (point.target.loading == ModuleLoading::kEager)
      return bare(point) + eager.predict(increment_row(point, 0, 1));
    const double computed = lazy.predict(lazy_row(point));
    if (point.stage != OutsideStage::kCommunicated) return computed;
    MixedRow row = increment_row(point, 0, 1);
    row.terms.resize(1);
    return computed + nccl.predict(row);
  }
};

bool is_eager(const OutsidePoint& point) { return point.target.loading == ModuleLoading::kEager; }
bool is_lazy(const OutsidePoint& point) {
  return !is_eager(point) && point.stage != OutsideStage::kCommunicated;
}
bool is_communicated(const OutsidePoint& point) {
  return !is_eager(point) && point.stage == OutsideStage::kCommunicated;
}

Models fit_models(const Points& points) {
  Models models;
  std::vector<MixedRow> rows;
  for (const OutsidePoint* point : points) {
    if (is_lazy(*point)) rows.push_back(lazy_row(*point));
  }
  models.lazy = fit_mixed_model(rows, {{}, kHeavyTailed});
  rows.clear();
  for (const OutsidePoint* point : points) {
    if (is_eager(*point) && point->stage != OutsideStage::kCommunicated)
      rows.push_back(increment_row(*point, models.bare(*point), kEagerNoise));
  }
  models.eager = fit_mixed_model(rows, {{std::nullopt, kEagerCudnn}, kHeavyTailed});
  rows.clear();
  for (const OutsidePoint* point : points) {
    if (!is_communicated(*point)) continue;
    rows.push_back(increment_row(*point, models.lazy.predict(lazy_row(*point)), kNcclNoise));
    rows.back().terms.resize(1);
  }
  models.nccl = fit_mixed_model(rows, {{}, kHeavyTailed});
  return models;
}

struct HeldOut {
  const OutsidePoint* point;
  double predicted;
  double error() const { return std::abs(point->bytes - predicted) / point->bytes; }
};

// Each point predicted by models that saw no point of its GPU.
std::vector<HeldOut> hold_out_gpus(const Points& points) {
  std::map<std::string, Points> gpus;
  for (const OutsidePoint* point : points) gpus[gpu_of(*point)].push_back(point);
  std::vector<HeldOut> held_out;
  for (const auto& [gpu, own] : gpus) {
    Points others;
    std::copy_if(points.begin(), points.end(), std::back_inserter(others),
                 [&, &name = gpu](const OutsidePoint* point) { return gpu_of(*point) != name; });
    const Models models = fit_models(others);
    for (const OutsidePoint* point : own) held_out.push_back({point, models.predict(*point)});
  }
  return held_out;
}

RatioGroup residuals(std::string_view name, const std::vector<HeldOut>& held_out,
                     const std::function<bool(const OutsidePoint&)>& is_wanted) {
  RatioGroup group{std::string(name), {}};
  for (const HeldOut& one : held_out) {
    if (is_wanted(*one.point))
      group.ratios.push_back(scaled_ratio(one.point->bytes, one.predicted, kResidualKnee));
  }
  std::sort(group.ratios.begin(), group.ratios.end());
  return group;
}

void add(Calibration& calibration, std::string_view name, double value, double error, int samples,
         const char* unit = "bytes") {
  calibration.coefficients.push_back(
      {std::string(name), value, error, unit, Source::kPublished, false, samples});
}

void add_coefficients(const Models& models, const OutsideFit& fit, Calibration& calibration) {
  const MixedFit& lazy = models.lazy;
  add(calibration, outside::kBare, lazy.coefficients[0], lazy.standard_errors[0], fit.lazy);
  add(calibration, outside::kBarePerKilothread, lazy.coefficients[1], lazy.standard_errors[1],
      fit.lazy);
  add(calibration, outside::kComputed, lazy.coefficients[2], lazy.standard_errors[2], fit.lazy);
  add(calibration, outside::kComputedPerKilothread, lazy.coefficients[3], lazy.standard_errors[3],
      fit.lazy);
  for (const auto& [architecture, deviation] : lazy.deviations[0])
    add(calibration, outside::architecture_effect(architecture), deviation, lazy.widths[0],
        fit.lazy, "1");
  for (const auto& [release, deviation] : lazy.deviations[2])
    add(calibration, outside::release_effect(release), deviation, lazy.widths[2], fit.lazy, "1");
  add(calibration, outside::kEager, models.eager.coefficients[0], models.eager.standard_errors[0],
      fit.eager);
  add(calibration, outside::kEagerCudnn, models.eager.coefficients[1],
      models.eager.standard_errors[1], fit.eager);
  for (const auto& [architecture, deviation] : models.eager.deviations[0])
    add(calibration, outside::eager_effect(architecture), deviation, models.eager.widths[0],
        fit.eager);
  add(calibration, outside::kNccl, models.nccl.coefficients[0], models.nccl.standard_errors[0],
      fit.communicated);
  for (const auto& [architecture, deviation] : models.nccl.deviations[0])
    add(calibration, outside::nccl_effect(architecture), deviation, models.nccl.widths[0],
        fit.communicated);
}

void add_gpu_effects(const Models& models, const Points& points, Calibration& calibration) {
  std::map<std::string, std::pair<std::string, int>> gpus;  // the effect's name and its points
  for (const OutsidePoint* point : points) {
    if (!is_lazy(*point)) continue;
    auto& [name, count] = gpus[gpu_of(*point)];
    name = outside::gpu_effect(point->target.architecture, point->target.multiprocessors);
    ++count;
  }
  for (const auto& [gpu, effect] : gpus)
    add(calibration, effect.first, models.lazy.deviations[1].at(gpu), models.lazy.widths[1],
        effect.second, "1");
}

void set_quality(const std::vector<HeldOut>& held_out, OutsideFit& fit) {
  std::map<std::string, std::vector<double>> by_gpu;
  std::vector<double> errors;
  for (const HeldOut& one : held_out) {
    if (!is_lazy(*one.point)) continue;
    errors.push_back(one.error());
    by_gpu[gpu_of(*one.point)].push_back(one.error());
  }
  for (const auto& [gpu, own] : by_gpu)
    fit.gpus.push_back({gpu, static_cast<int>(own.size()), median(own)});
  fit.median_error = median(errors);
  fit.p90_error = quantile(errors, 0.9);
}

}  // namespace

OutsideFit fit_outside(const std::vector<OutsidePoint>& points) {
  Points all;
  for (const OutsidePoint& point : points) all.push_back(&point);
  OutsideFit fit;
  fit.lazy = static_cast<int>(std::count_if(points.begin(), points.end(), is_lazy));
  fit.eager = static_cast<int>(std::count_if(points.begin(), points.end(), is_eager));
  fit.communicated = static_cast<int>(std::count_if(points.begin(), points.end(), is_communicated));
  if (static_cast<std::size_t>(fit.lazy) < kMinLazyPoints || fit.eager < 3 ||
      fit.communicated < 3) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} lazy points, {} eager ones and {} with NCCL are too few; {}, 3 and "
                            "3 are the least",
                            fit.lazy, fit.eager, fit.communicated, kMinLazyPoints));
  }
  const Models models = fit_models(all);
  const std::vector<HeldOut> held_out = hold_out_gpus(all);
  set_quality(held_out, fit);
  Calibration& calibration = fit.calibration;
  calibration.name = kCurrentStackName;
  calibration.source = Source::kPublished;
  calibration.usable = models.lazy.converged;
  if (!calibration.usable) calibration.refusal = "the fit did not converge";
  calibration.samples = static_cast<int>(points.size());
  add_coefficients(models, fit, calibration);
  add_gpu_effects(models, all, calibration);
  add(calibration, kKneeName, kResidualKnee, 0, calibration.samples);
  calibration.ratios = {residuals(kLazyResiduals, held_out,
                                  [](const OutsidePoint& point) {
                                    return is_lazy(point) && point.stage == OutsideStage::kComputed;
                                  }),
                        residuals(kEagerResiduals, held_out, is_eager),
                        residuals(kNcclResiduals, held_out, is_communicated)};
  calibration.quality.held_out_median_error = fit.median_error;
  calibration.quality.held_out_p90_error = fit.p90_error;
  return fit;
}

}  // namespace memfathom
