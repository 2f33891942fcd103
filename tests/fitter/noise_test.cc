#include "fitter/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace memfathom {
namespace {

constexpr double kMiB = 1 << 20;

std::vector<NoiseReading> readings(double absolute, double relative, int noise_class,
                                   int count = 400) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> size(std::log(500 * kMiB), std::log(40000 * kMiB));
  std::normal_distribution<double> normal;
  std::vector<NoiseReading> result;
  for (int i = 0; i < count; ++i) {
    const double bytes = std::exp(size(random));
    result.push_back(
        {bytes, absolute * normal(random) + relative * bytes * normal(random), noise_class});
  }
  return result;
}

TEST(NoiseTest, FindsRelativeNoise) {
  const Noise noise = estimate_noise(readings(0, 0.01, 0), 0);
  EXPECT_NEAR(noise.sigma(10000 * kMiB, 0) / (10000 * kMiB), 0.01, 0.002);
  EXPECT_NEAR(noise.sigma(1000 * kMiB, 0) / (1000 * kMiB), 0.01, 0.003);
}

TEST(NoiseTest, FindsAbsoluteNoise) {
  const Noise noise = estimate_noise(readings(5 * kMiB, 0, 0), 0);
  EXPECT_NEAR(noise.sigma(1000 * kMiB, 0) / kMiB, 5, 1);
  EXPECT_NEAR(noise.sigma(30000 * kMiB, 0) / kMiB, 5, 1.5);
}

TEST(NoiseTest, IsRobustToATenthOfOutliers) {
  std::vector<NoiseReading> rows = readings(5 * kMiB, 0, 0);
  for (std::size_t i = 0; i < rows.size(); i += 10) rows[i].error = rows[i].size;
  EXPECT_NEAR(estimate_noise(rows, 0).sigma(1000 * kMiB, 0) / kMiB, 5, 1.5);
}

TEST(NoiseTest, IsNeverFinerThanAPage) {
  const Noise noise = estimate_noise(readings(0, 0, 0), 2 * kMiB);
  EXPECT_NEAR(noise.sigma(1000 * kMiB, 0), 2 * kMiB / std::sqrt(12.0), 1);
}

TEST(NoiseTest, EstimatesAScalePerClassAndNeverLessForFewRows) {
  std::vector<NoiseReading> rows = readings(2 * kMiB, 0, 1);
  for (const NoiseReading& row : readings(30 * kMiB, 0, 2, 100)) rows.push_back(row);
  rows.push_back({1000 * kMiB, 0, 3});
  const Noise noise = estimate_noise(rows, 0);
  EXPECT_NEAR(noise.sigma(1000 * kMiB, 1) / kMiB, 2, 0.6);
  EXPECT_NEAR(noise.sigma(1000 * kMiB, 2) / kMiB, 30, 9);
  EXPECT_GE(noise.sigma(1000 * kMiB, 3), noise.sigma(1000 * kMiB, 1));
}

}  // namespace
}  // namespace memfathom
