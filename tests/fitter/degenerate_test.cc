#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "tests/fitter/simple_rows.h"

namespace memfathom::testing {
namespace {

using ::testing::HasSubstr;

void expect_refused(const std::vector<FitRow>& rows, const std::string& reason) {
  const FitSummary summary = fit_rows(rows);
  EXPECT_FALSE(summary.usable());
  EXPECT_THAT(summary.calibration().refusal, HasSubstr(reason));
  EXPECT_THAT(summary.brief(), HasSubstr(reason));
  EXPECT_THAT(summary.full(), HasSubstr("not usable"));
}

TEST(DegenerateDataTest, RefusesNoRowsAndOneRow) {
  expect_refused({}, "0 measured device totals are too few");
  expect_refused(simple_rows({.rows = 1}), "1 measured device totals are too few");
}

TEST(DegenerateDataTest, RefusesRowsThatAreAllTheSameJob) {
  const std::vector<FitRow> rows(50, simple_rows().front());
  expect_refused(rows, "1 distinct job size");
}

TEST(DegenerateDataTest, RefusesRowsThatAllHaveWeightZero) {
  std::vector<FitRow> rows = simple_rows();
  for (FitRow& row : rows) row.weight = 0;
  expect_refused(rows, "too few");
}

TEST(DegenerateDataTest, RefusesWeightsThatAreNotNumbers) {
  for (const double weight : {std::nan(""), std::numeric_limits<double>::infinity(), -1.0}) {
    std::vector<FitRow> rows = simple_rows();
    rows[7].weight = weight;
    expect_refused(rows, "row \"row-7\" cannot be used: its weight");
  }
}

TEST(DegenerateDataTest, RefusesNegativeZeroAndImpossibleMeasurements) {
  for (const std::int64_t count : {std::int64_t{-5}, std::int64_t{0}}) {
    std::vector<FitRow> rows = simple_rows();
    rows[3].measured = Bytes{count};
    expect_refused(rows, "must be positive");
  }
  std::vector<FitRow> rows = simple_rows();
  rows[3].measured = Bytes{1'000'000'000'000'000};
  expect_refused(rows, "no device holds that");
}

TEST(DegenerateDataTest, RefusesImpossibleReplays) {
  std::vector<FitRow> rows = simple_rows();
  rows[0].replay.activations = Bytes{-1};
  expect_refused(rows, "sizes are never negative");
  rows = simple_rows();
  rows[0].replay.allocated_peak = rows[0].replay.reserved_peak + Bytes{1};  // slack below 0
  expect_refused(rows, "sizes are never negative");
  rows = simple_rows();
  rows[0].replay.reserved_peak = Bytes{1'000'000'000'000'000};
  expect_refused(rows, "no device holds that");
}

TEST(DegenerateDataTest, RefusesARowWithNeitherBytesNorAnAnswer) {
  std::vector<FitRow> rows = simple_rows();
  rows[2].measured.reset();
  expect_refused(rows, "neither bytes nor an answer");
}

TEST(DegenerateDataTest, RefusesRowsWithOnlyFitOutcomes) {
  std::vector<FitRow> rows = simple_rows();
  for (FitRow& row : rows) {
    row.measured.reset();
    row.fits = true;
    row.capacity = mib(40000);
  }
  expect_refused(rows, "0 measured device totals are too few");
}

TEST(DegenerateDataTest, RefusesMeasurementsUnrelatedToTheJobs) {
  std::vector<FitRow> rows = simple_rows();
  std::mt19937_64 random(3);
  for (FitRow& row : rows)
    row.measured = mib(std::uniform_real_distribution<double>(1, 90000)(random));
  const FitSummary summary = fit_rows(rows);
  EXPECT_FALSE(summary.usable());
  EXPECT_THAT(summary.calibration().refusal, HasSubstr("median held-out error"));
}

TEST(DegenerateDataTest, KeepsTheConstantNonNegativeForMeasurementsBelowTheReplay) {
  std::vector<FitRow> rows = simple_rows({.base_mib = -50});
  const FitSummary summary = fit_rows(rows);
  EXPECT_GE(coefficient(summary, "context").value, 0);
}

TEST(DegenerateDataTest, RefusesLibrariesAlwaysUsedTogether) {
  std::vector<FitRow> rows = simple_rows({.cudnn_mib = 300});
  for (FitRow& row : rows) row.replay.uses_cufft = row.replay.uses_cudnn;
  expect_refused(rows, "the jobs that use cuFFT are those that use cuDNN");
  for (std::size_t i = 0; i < 9; i += 3) rows[i].replay.uses_cufft = false;
  EXPECT_TRUE(fit_rows(rows).usable()) << "three jobs with one of them tell the two apart";
}

TEST(DegenerateDataTest, RefusesNearlyEqualSizes) {
  std::vector<FitRow> rows = simple_rows();
  int i = 0;
  for (FitRow& row : rows) {
    row.replay.reserved_peak = mib(4000 + 2 * (i++ % 5));
    row.replay.allocated_peak = mib(3900);
  }
  expect_refused(rows, "the constant cannot be determined (it is collinear with them)");
}

TEST(DegenerateDataTest, SixRowsWithoutNoiseFit) {
  const FitSummary summary = fit_rows(simple_rows({.rows = 6, .noise_mib = 0}));
  EXPECT_TRUE(summary.usable()) << summary.brief();
  EXPECT_LT(summary.interval.level, 0.9) << "six ratios cannot promise 90 %";
  EXPECT_GT(coefficient(summary, "context").standard_error, 0) << "readings come in pages";
}

TEST(DegenerateDataTest, RefusesInvalidOptions) {
  FitOptions options = simple_options();
  options.folds = 0;
  EXPECT_THROW(fit_rows(simple_rows(), options), Error);
}

}  // namespace
}  // namespace memfathom::testing
