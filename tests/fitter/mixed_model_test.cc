#include "fitter/mixed_model.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error.h"

namespace memfathom {
namespace {

// value = 10 + 3 x + the group's deviation + noise of 1.
std::vector<MixedRow> simulated_rows(int groups, int rows_per_group, double width) {
  std::mt19937_64 engine(7);
  const auto uniform = [&] { return static_cast<double>(engine() >> 11) / 9007199254740992.0; };
  const auto normal = [&] {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  };
  std::vector<MixedRow> rows;
  for (int g = 0; g < groups; ++g) {
    const double deviation = width * normal();
    for (int i = 0; i < rows_per_group; ++i) {
      const double x = 20 * uniform();
      rows.push_back({{1, x}, {std::to_string(g)}, 1, 10 + 3 * x + deviation + normal(), 1});
    }
  }
  return rows;
}

TEST(MixedModelTest, FindsTheLineTheWidthOfTheGroupsAndTheNoise) {
  const MixedFit fit = fit_mixed_model(simulated_rows(40, 6, 5));
  EXPECT_TRUE(fit.converged);
  EXPECT_NEAR(fit.coefficients[0], 10, 2.5);
  EXPECT_NEAR(fit.coefficients[1], 3, 0.1);
  EXPECT_NEAR(fit.widths[0], 5, 1.5);
  EXPECT_NEAR(fit.scale, 1, 0.3);
}

TEST(MixedModelTest, GroupsThatDoNotDifferHaveNoDeviations) {
  const MixedFit fit = fit_mixed_model(simulated_rows(20, 6, 0));
  EXPECT_LT(fit.widths[0], 0.5);
}

TEST(MixedModelTest, GrossOutliersHaveNoWeight) {
  std::vector<MixedRow> rows = simulated_rows(20, 6, 1);
  const MixedFit clean = fit_mixed_model(rows);
  for (std::size_t i = 0; i < rows.size(); i += 15) rows[i].value += 1000;
  const MixedFit spoiled = fit_mixed_model(rows);
  EXPECT_NEAR(spoiled.coefficients[0], clean.coefficients[0], 1);
  EXPECT_NEAR(spoiled.coefficients[1], clean.coefficients[1], 0.1);
}

TEST(MixedModelTest, AnUnseenGroupIsPredictedByTheLine) {
  const MixedFit fit = fit_mixed_model(simulated_rows(40, 6, 5));
  const MixedRow row{{1, 2}, {"another"}, 1, 0, 1};
  EXPECT_DOUBLE_EQ(fit.predict(row), fit.coefficients[0] + 2 * fit.coefficients[1]);
}

TEST(MixedModelTest, RefusesTooFewRowsAndRowsOfDifferentShape) {
  EXPECT_THROW(fit_mixed_model({}), Error);
  std::vector<MixedRow> rows = simulated_rows(3, 3, 1);
  rows[1].terms.push_back(1);
  EXPECT_THROW(fit_mixed_model(rows), Error);
}

}  // namespace
}  // namespace memfathom
