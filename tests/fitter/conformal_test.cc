#include "fitter/conformal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/interval.h"

namespace memfathom {
namespace {

std::vector<double> sorted_normal(int count, double mean, double sigma, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(mean, sigma);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(normal(random));
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<HeldOutRatio> rows_of(const std::string& group, const std::vector<double>& ratios) {
  std::vector<HeldOutRatio> rows;
  for (const double ratio : ratios)
    rows.push_back({group, ratio, static_cast<int>(rows.size()) % 10});
  return rows;
}

TEST(ConformalTest, GivesADifferentGroupItsOwnInterval) {
  std::vector<HeldOutRatio> rows = rows_of("mlp", sorted_normal(200, 1, 0.002, 1));
  for (const HeldOutRatio& row : rows_of("conv", sorted_normal(60, 1, 0.05, 2)))
    rows.push_back(row);
  for (const HeldOutRatio& row : rows_of("vit", sorted_normal(60, 1, 0.002, 3)))
    rows.push_back(row);
  Calibration calibration;
  calibration.ratios = ratio_groups(rows, FitOptions{});
  EXPECT_EQ(ratios_for(calibration, "conv")->ratios.size(), 60U);
  EXPECT_EQ(ratios_for(calibration, "vit")->group, "")
      << "it does not differ from the others enough";
  EXPECT_EQ(ratios_for(calibration, "")->ratios.size(), 320U);
}

TEST(ConformalTest, NeverSplitsOffASmallGroup) {
  std::vector<HeldOutRatio> rows = rows_of("mlp", sorted_normal(200, 1, 0.002, 1));
  for (const HeldOutRatio& row : rows_of("odd", sorted_normal(20, 2, 0.01, 2))) rows.push_back(row);
  Calibration calibration;
  calibration.ratios = ratio_groups(rows, FitOptions{});
  EXPECT_EQ(ratios_for(calibration, "odd")->group, "");
}

TEST(ConformalTest, TheKolmogorovSmirnovTestKeepsItsLevel) {
  int alarms = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const double p = kolmogorov_smirnov(sorted_normal(50, 0, 1, 2 * seed),
                                        sorted_normal(80, 0, 1, 2 * seed + 1));
    alarms += p < 0.05 ? 1 : 0;
  }
  EXPECT_GE(alarms, 6);  // 400 x 0.05 = 20, give or take 4.4; the test is a little conservative
  EXPECT_LE(alarms, 33);
}

TEST(ConformalTest, EqualSamplesDoNotDiffer) {
  const std::vector<double> ties(40, 1.0);
  EXPECT_EQ(kolmogorov_smirnov(ties, ties), 1);
}

TEST(ConformalTest, CoverageOfCrossValidatedNormalRatiosIsNearTheLevel) {
  const Coverage coverage =
      cross_coverage(rows_of("all", sorted_normal(2000, 1, 0.01, 5)), FitOptions{});
  EXPECT_EQ(coverage.rows, 2000);
  EXPECT_NEAR(coverage.share(), 0.9, 0.02);
}

std::vector<HeldOutRatio> readings(double absolute_mib, double relative) {
  constexpr double kMiB = 1 << 20;
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> size(std::log(500 * kMiB), std::log(40000 * kMiB));
  std::vector<HeldOutRatio> rows;
  for (int i = 0; i < 300; ++i) {
    const double predicted = std::exp(size(random));
    const double error =
        absolute_mib * kMiB * normal(random) + relative * predicted * normal(random);
    rows.push_back({"all", 1, 0, predicted + error, predicted});
  }
  return rows;
}

TEST(ConformalTest, KneeIsZeroForRelativeErrorsAndBeyondEveryJobForAbsoluteOnes) {
  EXPECT_EQ(interval_knee(readings(0, 0.05), FitOptions{}), 0);
  EXPECT_GT(interval_knee(readings(300, 0), FitOptions{}), 40000.0 * (1 << 20));
}

TEST(ConformalTest, CoversSmallAndLargeJobsEquallyWithAKnee) {
  std::vector<HeldOutRatio> rows = readings(500, 0.05);
  const double knee = interval_knee(rows, FitOptions{});
  scale_ratios(knee, &rows);
  std::vector<double> ratios;
  for (const HeldOutRatio& row : rows) ratios.push_back(row.ratio);
  std::sort(ratios.begin(), ratios.end());
  const RatioInterval interval = ratio_interval(ratios, 0.9);
  Coverage small;
  Coverage large;
  for (const HeldOutRatio& row : rows) {
    Coverage& own = row.predicted < 4000.0 * (1 << 20) ? small : large;
    ++own.rows;
    own.covered += interval.low <= row.ratio && row.ratio <= interval.high ? 1 : 0;
  }
  EXPECT_NEAR(small.share(), 0.9, 0.06);
  EXPECT_NEAR(large.share(), 0.9, 0.06);
}

TEST(ConformalTest, BinomialTailsMatchATable) {
  EXPECT_NEAR(binomial_below(0, 10, 0.5), 1.0 / 1024, 1e-12);
  EXPECT_NEAR(binomial_below(5, 10, 0.5), 0.623046875, 1e-9);
  EXPECT_NEAR(binomial_below(17, 20, 0.9), 0.3230731, 1e-6);
  EXPECT_NEAR(binomial_below(20, 20, 0.9), 1, 1e-12);
}

}  // namespace
}  // namespace memfathom
