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

TEST(ConformalTest, GivesAGroupThatDiffersAnIntervalOfItsOwn) {
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

TEST(ConformalTest, BinomialTailsAreThoseOfATable) {
  EXPECT_NEAR(binomial_below(0, 10, 0.5), 1.0 / 1024, 1e-12);
  EXPECT_NEAR(binomial_below(5, 10, 0.5), 0.623046875, 1e-9);
  EXPECT_NEAR(binomial_below(17, 20, 0.9), 0.3230731, 1e-6);
  EXPECT_NEAR(binomial_below(20, 20, 0.9), 1, 1e-12);
}

}  // namespace
}  // namespace memfathom
