#include "fitter/collectives_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/collectives.h"

namespace memfathom {
namespace {

using namespace literals;
using ::testing::HasSubstr;

const Coefficient* find(const std::vector<Coefficient>& coefficients, std::string_view name) {
  for (const Coefficient& one : coefficients) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

CollectivesRow row(int ranks, Bytes communicator, std::optional<int> channels = std::nullopt) {
  CollectivesRow row;
  row.ranks = ranks;
  row.channels = channels;
  row.communicator = communicator;
  row.second_communicator = 40_MiB;
  return row;
}

TEST(CollectivesFitTest, SeparatesTheFirstCommunicatorRanksAndChannels) {
  const CollectivesFit fit =
      fit_collectives({row(2, 200_MiB), row(4, 224_MiB), row(8, 272_MiB), row(2, 106_MiB, 1),
                       row(2, 124_MiB, 4), row(2, 196_MiB, 16)},
                      2_MiB);
  const Coefficient* first = find(fit.coefficients, collectives::kFirst);
  ASSERT_NE(first, nullptr);
  EXPECT_NEAR(first->value, 200.0 * (1 << 20), 1) << "rows with given channels do not count";
  EXPECT_EQ(first->samples, 3);
  EXPECT_NEAR(find(fit.coefficients, collectives::kPerRank)->value, 12.0 * (1 << 20), 1);
  EXPECT_NEAR(find(fit.coefficients, collectives::kPerChannel)->value, 6.0 * (1 << 20), 1);
  EXPECT_NEAR(find(fit.coefficients, collectives::kNext)->value, 40.0 * (1 << 20), 1);
  EXPECT_EQ(find(fit.coefficients, collectives::kDdp), nullptr) << "not measured is not 0";
  // Exact lines still have the readings' step as their error.
  EXPECT_GT(first->standard_error, (2_MiB).count() / std::sqrt(12.0) / 2);
}

TEST(CollectivesFitTest, FewRowsTakeTheScatterOfPublishedFigures) {
  const CollectivesFit fit = fit_collectives({row(2, 200_MiB)}, 2_MiB);
  EXPECT_NEAR(find(fit.coefficients, collectives::kFirst)->standard_error, 50.0 * (1 << 20), 1);
  EXPECT_EQ(find(fit.coefficients, collectives::kPerRank), nullptr);
  ASSERT_EQ(fit.notes.size(), 1u);
  EXPECT_THAT(fit.notes[0], HasSubstr("of one size"));
}

TEST(CollectivesFitTest, IntervalsHoldTheTruthAsOftenAsTheySay) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 8.0 * (1 << 20));
  constexpr int kMachines = 400;
  int held = 0;
  for (int machine = 0; machine < kMachines; ++machine) {
    std::vector<CollectivesRow> rows;
    for (const int ranks : {2, 3, 4, 5, 6, 7, 8}) {
      const double truth = (180.0 + 9.0 * (ranks - 2)) * (1 << 20);
      rows.push_back(row(ranks, Bytes{static_cast<std::int64_t>(truth + noise(random))}));
    }
    const CollectivesFit fit = fit_collectives(rows, 2_MiB);
    const Coefficient* first = find(fit.coefficients, collectives::kFirst);
    constexpr double kStudent90 = 2.015;  // five degrees of freedom
    if (std::abs(first->value - 180.0 * (1 << 20)) <= kStudent90 * first->standard_error) ++held;
  }
  EXPECT_GE(held, kMachines * 85 / 100);
  EXPECT_LE(held, kMachines * 95 / 100);
}

TEST(CollectivesFitTest, WithoutRowsThereIsNoCoefficient) {
  EXPECT_TRUE(fit_collectives({}, 2_MiB).coefficients.empty());
  EXPECT_TRUE(fit_collectives({row(2, 100_MiB, 4)}, 2_MiB).coefficients.empty());
}

TEST(CollectivesFitTest, AppendedCoefficientsKeepTheCovarianceSquare) {
  Calibration calibration;
  calibration.coefficients = {{"context", 1.0, 2.0, "bytes"}, {"framework", 3.0, 4.0, "bytes"}};
  calibration.covariance = {4.0, 1.0, 1.0, 16.0};
  append_coefficients({{"communicator.first", 5.0, 6.0, "bytes"}}, calibration);
  EXPECT_EQ(calibration.coefficients.size(), 3u);
  EXPECT_THAT(calibration.covariance, ::testing::ElementsAre(4, 1, 0, 1, 16, 0, 0, 0, 36));
}

TEST(CollectivesFitTest, AJobsCommunicatorsAreSummed) {
  Calibration calibration;
  EXPECT_FALSE(measured_communicators(calibration, {2}).has_value());
  calibration.coefficients = {{std::string(collectives::kFirst), 200.0, 3.0, "bytes"},
                              {std::string(collectives::kNext), 40.0, 4.0, "bytes"},
                              {std::string(collectives::kPerRank), 10.0, 0.0, "bytes"}};
  const std::optional<CommunicatorBytes> one = measured_communicators(calibration, {2});
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->bytes, 200);
  EXPECT_EQ(one->standard_error, 3);
  const std::optional<CommunicatorBytes> two = measured_communicators(calibration, {4, 2});
  EXPECT_EQ(two->bytes, 200 + 40 + 20);
  EXPECT_EQ(two->standard_error, 5);
  EXPECT_EQ(measured_communicators(calibration, {})->bytes, 0);
}

}  // namespace
}  // namespace memfathom
