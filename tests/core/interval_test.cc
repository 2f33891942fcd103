#include "core/interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace memfathom {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values;
  for (int i = 1; i <= n; ++i) values.push_back(i);
  return values;
}

TEST(RatioIntervalTest, TakesTheOrderStatisticsThatFiniteSamplesNeed) {
  const RatioInterval interval = ratio_interval(one_to(99), 0.9);  // (99 + 1) * 0.05 = 5
  EXPECT_EQ(interval.low, 5);
  EXPECT_EQ(interval.high, 95);
  EXPECT_EQ(interval.level, 0.9);
}

TEST(RatioIntervalTest, NineteenRatiosAreJustEnoughForNinetyPercent) {
  EXPECT_EQ(ratio_interval(one_to(19), 0.9).level, 0.9);
  EXPECT_EQ(ratio_interval(one_to(19), 0.9).high, 19);
  const RatioInterval fewer = ratio_interval(one_to(18), 0.9);
  EXPECT_NEAR(fewer.level, 17.0 / 19, 1e-12);
  EXPECT_EQ(fewer.low, 1);
  EXPECT_EQ(fewer.high, 18);
}

TEST(RatioIntervalTest, ReturnsNothingWithoutRatios) {
  EXPECT_EQ(ratio_interval({}, 0.9).level, 0);
}

TEST(RatioIntervalTest, CoversANewDrawAtItsLevel) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> draw(0, 0.1);
  int covered = 0;
  constexpr int kTrials = 20000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> ratios(39);
    for (double& ratio : ratios) ratio = draw(random);
    std::sort(ratios.begin(), ratios.end());
    const RatioInterval interval = ratio_interval(ratios, 0.9);
    const double next = draw(random);
    covered += interval.low <= next && next <= interval.high ? 1 : 0;
  }
  EXPECT_NEAR(covered / static_cast<double>(kTrials), 0.9, 0.007);  // three standard errors
}

TEST(ProbabilityTest, IsNeverCertainAndGrowsWithFreeMemory) {
  const std::vector<double> ratios = one_to(9);
  EXPECT_NEAR(probability_below(ratios, 0.5), 0.05, 1e-12);
  EXPECT_NEAR(probability_below(ratios, 4.5), 0.45, 1e-12);
  EXPECT_NEAR(probability_below(ratios, 100), 0.95, 1e-12);
}

TEST(PredictionIntervalTest, UsesTheIntervalGroupOfTheJob) {
  Calibration calibration;
  calibration.ratios = {
      {"", {0.9, 1.0, 1.1}}, {"conv", {0.5, 1.0, 2.0}}, {"mlp", {}}, {"unseen", {0.1, 1.0, 9.0}}};
  EXPECT_EQ(ratios_for(calibration, "conv")->group, "conv");
  EXPECT_EQ(ratios_for(calibration, "mlp")->group, "")
      << "sampled, and no different from the others";
  EXPECT_EQ(ratios_for(calibration, "diffusion")->group, "unseen");
  EXPECT_EQ(ratios_for(calibration, "")->group, "");

  const PredictionInterval interval = prediction_interval(calibration, "conv", Bytes{1000}, 0.9);
  EXPECT_EQ(interval.low, Bytes{500});
  EXPECT_EQ(interval.high, Bytes{2000});
  EXPECT_EQ(interval.level, 0.5) << "three ratios promise no more";
  EXPECT_NEAR(*probability_fits(calibration, "conv", Bytes{1000}, Bytes{1500}), 0.625, 1e-12);
}

TEST(PredictionIntervalTest, ErrorsAreAbsoluteBelowTheKneeAndRelativeAboveIt) {
  Calibration calibration;
  calibration.coefficients = {{"interval.knee", 3000, 0, "bytes", Source::kFitted, false, 3}};
  calibration.ratios = {{"", {0.9, 1.0, 1.2}}};
  EXPECT_EQ(scaled_ratio(5000, 4000, 3000), 1.2);
  const PredictionInterval interval = prediction_interval(calibration, "", Bytes{4000}, 0.9);
  EXPECT_EQ(interval.low, Bytes{3500});
  EXPECT_EQ(interval.high, Bytes{5000});
  EXPECT_NEAR(*probability_fits(calibration, "", Bytes{4000}, Bytes{5000}), 0.875, 1e-12);

  const PredictionInterval small = prediction_interval(calibration, "", Bytes{1}, 0.9);
  EXPECT_EQ(small.low, Bytes{0}) << "nothing is below nothing";
  EXPECT_EQ(small.high, Bytes{601});
  const PredictionInterval large = prediction_interval(calibration, "", Bytes{4'000'000}, 0.9);
  EXPECT_NEAR(static_cast<double>(large.high.count()), 4'800'000, 1);
}

TEST(PredictionIntervalTest, ReturnsNothingForACalibrationWithoutRatios) {
  const Calibration calibration;
  EXPECT_EQ(prediction_interval(calibration, "mlp", Bytes{10}, 0.9).level, 0);
  EXPECT_EQ(prediction_interval(calibration, "mlp", Bytes{10}, 0.9).high, Bytes{10});
  EXPECT_FALSE(probability_fits(calibration, "mlp", Bytes{10}, Bytes{20}).has_value());
}

TEST(PredictionIntervalTest, HugePredictionsDoNotOverflow) {
  Calibration calibration;
  calibration.ratios = {{"", {0.5, 4.0}}};
  const PredictionInterval interval =
      prediction_interval(calibration, "", Bytes{std::int64_t{1} << 62}, 0.9);
  EXPECT_GT(interval.high, interval.low);
}

}  // namespace
}  // namespace memfathom
