#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/fitted_workspaces.h"
#include "core/interval.h"
#include "core/quantile.h"
#include "fitter/conformal.h"
#include "tests/fitter/simple_rows.h"
#include "tests/support/simulated_gpu.h"

namespace memfathom::testing {
namespace {

constexpr int kCards = 200 / MEMFATHOM_ONE_CARD_IN;
constexpr int kProfiled = 160;
constexpr int kFresh = 40;

struct Tally {
  int covered = 0;
  int all = 0;
  // Below the binomial 95 % band around `level`?
  bool too_low(double level) const { return binomial_below(covered, all, level) < 0.025; }
};

struct Outcome {
  std::array<Tally, 4> coefficients;  // context, cuBLAS, cuDNN, cuFFT
  Tally predictions;
  std::vector<double> width_over_spread;
  int usable = 0;
  int false_alarms = 0;
};

double width(const RatioInterval& interval) { return interval.high - interval.low; }

// The 97.5 % quantile of Student's t by its expansion around the normal one.
double student(int degrees) {
  constexpr double kNormal = 1.959964;
  return kNormal + (kNormal * kNormal * kNormal + kNormal) / (4.0 * degrees);
}

void judge_coefficients(const SimulatedGpu::Truth& truth, const FitSummary& summary,
                        Outcome* outcome) {
  const std::array<double, 4> hidden{truth.context, truth.cublas, truth.cudnn, truth.cufft};
  const std::array<const char*, 4> names{"context", "module.cublas", "module.cudnn",
                                         "module.cufft"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Coefficient& c = coefficient(summary, names[i]);
    if (c.prior_only) continue;
    ++outcome->coefficients[i].all;
    const bool covered = std::abs(c.value - hidden[i]) <= student(c.samples - 1) * c.standard_error;
    outcome->coefficients[i].covered += covered ? 1 : 0;
  }
}

// Jobs the GPU runs afterwards: predicted with the calibration alone.
void judge_predictions(const SimulatedGpu& gpu, std::uint64_t seed, const FitSummary& summary,
                       Outcome* outcome) {
  const Calibration& calibration = summary.calibration();
  const FittedWorkspaces workspaces(calibration);
  const Constants constants = constants_of(calibration);
  std::mt19937_64 random(seed);
  std::vector<double> ratios;
  for (int i = 0; i < kFresh; ++i) {
    const FitRow row = row_of(gpu.measure(random), workspaces, "fresh");
    const Bytes predicted{static_cast<std::int64_t>(predict_device(row.replay, constants.data()))};
    const PredictionInterval interval =
        prediction_interval(calibration, row.family, predicted, 0.9);
    ++outcome->predictions.all;
    outcome->predictions.covered +=
        interval.low <= *row.measured && *row.measured <= interval.high ? 1 : 0;
    ratios.push_back(scaled_ratio(static_cast<double>(row.measured->count()),
                                  static_cast<double>(predicted.count()), summary.knee));
  }
  std::sort(ratios.begin(), ratios.end());
  outcome->width_over_spread.push_back(width(summary.interval) /
                                       width(ratio_interval(ratios, 0.9)));
}

Outcome recover_all() {
  Outcome result;
  for (std::uint64_t seed = 0; seed < kCards; ++seed) {
    const SimulatedGpu gpu(seed);
    const Campaign campaign = profile(gpu, kProfiled, seed + 1000);
    const FitSummary summary = fit(campaign.rows, campaign.workspaces, simple_options());
    result.usable += summary.usable() ? 1 : 0;
    result.false_alarms += summary.diagnosis.missing.empty() ? 0 : 1;
    judge_coefficients(gpu.truth(), summary, &result);
    judge_predictions(gpu, seed + 5000, summary, &result);
  }
  return result;
}

// One case, because CTest runs every case in a process of its own and the GPUs are the costly
// part.
TEST(RecoveryTest, RecoversTwoHundredRandomGpusWithCalibratedErrors) {
  const Outcome outcome = recover_all();
  Tally all;
  for (const Tally& tally : outcome.coefficients) {
    EXPECT_GT(tally.all, kCards / 2);
    EXPECT_FALSE(tally.too_low(0.95)) << tally.covered << " of " << tally.all;
    all.covered += tally.covered;
    all.all += tally.all;
  }
  EXPECT_FALSE(all.too_low(0.95)) << all.covered << " of " << all.all;

  const Tally& predictions = outcome.predictions;
  EXPECT_FALSE(predictions.too_low(0.9)) << predictions.covered << " of " << predictions.all;
  const double width = median(outcome.width_over_spread);
  EXPECT_LE(width, 1.5) << "an interval wider than the residuals ask for";

  EXPECT_GE(outcome.usable, kCards * 95 / 100);
  EXPECT_LE(outcome.false_alarms, kCards * 2 / 100);
  std::printf(
      "coefficients %d/%d, predictions %d/%d, median width / spread %.2f, usable %d, false alarms "
      "%d\n",
      all.covered, all.all, predictions.covered, predictions.all, width, outcome.usable,
      outcome.false_alarms);
}

}  // namespace
}  // namespace memfathom::testing
