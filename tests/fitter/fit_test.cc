#include "fitter/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/coefficients.h"
#include "core/interval.h"
#include "tests/fitter/simple_rows.h"

namespace memfathom::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FitTest, FindsTheConstantWithinItsError) {
  const FitSummary summary = fit_rows(simple_rows());
  ASSERT_TRUE(summary.usable()) << summary.brief();
  const Coefficient& context = coefficient(summary, "context");
  EXPECT_NEAR(context.value / kMiB, 1000, 3 * context.standard_error / kMiB);
  EXPECT_LT(context.standard_error / kMiB, 3);
  EXPECT_EQ(context.samples, 60);
  EXPECT_FALSE(context.prior_only);
}

TEST(FitTest, ToleratesATenthOfOutliersAndListsThem) {
  std::vector<FitRow> rows = simple_rows();
  for (std::size_t i = 0; i < rows.size(); i += 10) {
    rows[i].measured = *rows[i].measured + mib(900);
  }
  const FitSummary summary = fit_rows(rows);
  EXPECT_NEAR(coefficient(summary, "context").value / kMiB, 1000, 4);
  EXPECT_EQ(summary.outliers.size(), 6U);
  for (const Outlier& outlier : summary.outliers) {
    EXPECT_NEAR(outlier.measured - outlier.predicted, 900 * kMiB, 20 * kMiB);
    EXPECT_GT(outlier.leverage, 0);
    EXPECT_THAT(summary.full(), HasSubstr(outlier.id + " "));
  }
  EXPECT_EQ(summary.calibration().ratios.front().ratios.size(), rows.size())
      << "outliers keep their place in the intervals";
}

// The shape of public A100 measurements: nine rows of ten agree to the page, the rest are anywhere.
TEST(FitTest, ExactRowsGiveTheirConstantWithAnErrorOfOnePage) {
  std::vector<FitRow> rows = simple_rows({.rows = 300, .base_mib = 1429, .noise_mib = 0});
  for (std::size_t i = 0; i < rows.size(); i += 10) {
    rows[i].measured = *rows[i].measured + mib(i % 20 == 0 ? 40 : -300);
  }
  const FitSummary summary = fit_rows(rows);
  ASSERT_TRUE(summary.usable()) << summary.brief();
  const Coefficient& context = coefficient(summary, "context");
  EXPECT_NEAR(context.value / kMiB, 1429, 0.5);
  EXPECT_NEAR(context.standard_error / kMiB, 2 / std::sqrt(3.0), 0.3);
  EXPECT_GE(*summary.calibration().quality.coverage_90, 0.85);
}

TEST(FitTest, KeepsAModuleOnlyIfItLowersTheHeldOutError) {
  const FitSummary with = fit_rows(simple_rows({.cudnn_mib = 300}));
  const Coefficient& cudnn = coefficient(with, "module.cudnn");
  EXPECT_NEAR(cudnn.value / kMiB, 300, 3 * cudnn.standard_error / kMiB);
  EXPECT_FALSE(cudnn.prior_only);

  const Coefficient& cublas = coefficient(with, "module.cublas");
  EXPECT_LT(cublas.value / kMiB, 3 * cublas.standard_error / kMiB + 1)
      << "no row holds anything of cuBLAS";
}

TEST(FitTest, ReportsAnUndeterminedTermAsPrior) {
  std::vector<FitRow> rows = simple_rows({.cudnn_mib = 300});
  for (FitRow& row : rows) row.replay.uses_cublas = true;  // collinear with the constant
  const FitSummary summary = fit_rows(rows);
  const Coefficient& cublas = coefficient(summary, "module.cublas");
  EXPECT_TRUE(cublas.prior_only);
  EXPECT_EQ(cublas.source, Source::kDefault);
  EXPECT_EQ(cublas.samples, 0);
  EXPECT_EQ(cublas.value, default_of(module_of(kFirstModule), "memfathom").value);
  EXPECT_NEAR((coefficient(summary, "context").value + cublas.value) / kMiB, 1000, 5)
      << "the sum is what the rows know";
  const Coefficient& cufft = coefficient(summary, "module.cufft");
  EXPECT_TRUE(cufft.prior_only) << "no row uses cuFFT";
  EXPECT_THAT(summary.full(), HasSubstr("module.cublas cannot be separated from the other terms"));
}

TEST(FitTest, GivesTheSameCalibrationForTheSameRows) {
  const std::vector<FitRow> rows = simple_rows({.cudnn_mib = 120});
  EXPECT_EQ(fit_rows(rows).full(), fit_rows(rows).full());
}

TEST(FitTest, NeverFitsRowsKeptForValidation) {
  std::vector<FitRow> rows = simple_rows({.rows = 100});
  const double before = coefficient(fit_rows(rows), "context").value;
  std::vector<FitRow> more = rows;
  for (FitRow row : simple_rows({.rows = 40, .base_mib = 1010, .seed = 9})) {
    row.validation = true;
    more.push_back(row);
  }
  const FitSummary summary = fit_rows(more);
  EXPECT_EQ(coefficient(summary, "context").value, before);
  EXPECT_EQ(summary.calibration().quality.validation_rows, 40);
  EXPECT_EQ(summary.calibration().samples, 100);
}

TEST(FitTest, RefusesIntervalsThatDoNotCoverTheValidationRows) {
  std::vector<FitRow> rows = simple_rows({.rows = 100});
  for (FitRow row : simple_rows({.rows = 40, .base_mib = 1300, .seed = 9})) {
    row.validation = true;
    rows.push_back(row);
  }
  const FitSummary summary = fit_rows(rows);
  EXPECT_FALSE(summary.usable());
  EXPECT_THAT(summary.calibration().refusal, HasSubstr("cover only"));
}

TEST(FitTest, RefusesACalibrationThatIsWorseThanTheDefaults) {
  const Constants defaults = default_constants("memfathom");
  std::vector<FitRow> rows = simple_rows({.rows = 60, .base_mib = 900});
  for (FitRow row : simple_rows({.rows = 60, .seed = 5})) {
    row.measured = Bytes{static_cast<std::int64_t>(predict_device(row.replay, defaults.data()))};
    row.validation = true;
    rows.push_back(row);
  }
  const FitSummary summary = fit_rows(rows);
  EXPECT_FALSE(summary.usable());
  EXPECT_THAT(summary.brief(), HasSubstr("worse than that of the default constants"));
}

TEST(FitTest, CensoredRowsMatterOnlyIfContradicted) {
  std::vector<FitRow> rows = simple_rows();
  const double before = coefficient(fit_rows(rows), "context").value;
  FitRow agrees = rows.front();
  agrees.id = "agrees";
  agrees.measured.reset();
  agrees.fits = true;
  agrees.capacity = mib(80000);
  rows.push_back(agrees);
  FitSummary summary = fit_rows(rows);
  EXPECT_NEAR(coefficient(summary, "context").value, before, 0.05 * kMiB);
  EXPECT_EQ(summary.censored, 1);
  EXPECT_EQ(summary.calibration().samples, 60) << "a censored row is no measurement";

  rows.back().id = "contradicts";
  rows.back().fits = false;  // it did not fit in 80 GB, though about 5 GB are predicted
  summary = fit_rows(rows);
  ASSERT_EQ(summary.outliers.size(), 1U);
  EXPECT_EQ(summary.outliers.front().id, "contradicts");
  EXPECT_TRUE(summary.outliers.front().censored);
}

TEST(FitTest, ARowOfSmallWeightCountsLess) {
  std::vector<FitRow> rows = simple_rows({.rows = 40, .noise_mib = 8});
  std::vector<FitRow> others =
      simple_rows({.rows = 40, .base_mib = 1020, .noise_mib = 8, .seed = 3});
  for (FitRow& row : others) row.weight = 0.05;
  rows.insert(rows.end(), others.begin(), others.end());
  EXPECT_LT(coefficient(fit_rows(rows), "context").value / kMiB, 1006);
  for (FitRow& row : rows) row.weight = 1;
  EXPECT_GT(coefficient(fit_rows(rows), "context").value / kMiB, 1006);
}

TEST(FitTest, AllocatedAndReservedRowsCheckTheReplayAndMoveNoConstant) {
  std::vector<FitRow> rows = simple_rows();
  const double before = coefficient(fit_rows(rows), "context").value;
  for (FitRow row : simple_rows({.rows = 30, .seed = 4})) {
    row.metric = Metric::kReserved;
    row.measured = Bytes{row.replay.reserved_peak.count() * 11 / 10};
    rows.push_back(row);
  }
  const FitSummary summary = fit_rows(rows);
  EXPECT_EQ(coefficient(summary, "context").value, before);
  ASSERT_EQ(summary.diagnosis.checks.size(), 1U);
  EXPECT_EQ(summary.diagnosis.checks.front().rows, 30);
  EXPECT_NEAR(summary.diagnosis.checks.front().median_ratio, 1.1, 1e-3);
}

TEST(FitTest, FactorsStayAtOneWhenTheReplayIsRight) {
  const FitSummary summary = fit_rows(simple_rows({.rows = 200}));
  EXPECT_THAT(summary.diagnosis.missing, IsEmpty()) << summary.full();
  for (const char* name : {"theta.states", "theta.activations"}) {
    const Coefficient& theta = coefficient(summary, name);
    EXPECT_NEAR(theta.value, 1, 4 * theta.standard_error + 1e-3) << name;
  }
}

// Five stacks with different constants; predicts a sixth.
TEST(FitTest, UsesErrorsBetweenFamiliesForUnseenFamilies) {
  std::vector<FitRow> rows;
  const std::array<double, 5> constants{500, 900, 1100, 1400, 2000};
  for (std::size_t stack = 0; stack < constants.size(); ++stack) {
    for (FitRow row : simple_rows({.rows = 40, .base_mib = constants[stack], .seed = stack + 1})) {
      row.family = row.group = fmt::format("stack {}", stack);
      rows.push_back(row);
    }
  }
  FitOptions options = simple_options();
  options.for_unseen_families = true;
  const FitSummary summary = fit_rows(rows, options);
  ASSERT_TRUE(summary.usable()) << summary.brief();
  const Coefficient& context = coefficient(summary, "context");
  EXPECT_GT(context.standard_error / kMiB, 400) << "the next stack may be as far off as these are";
  ASSERT_EQ(summary.calibration().ratios.size(), 1U) << "one group: a new stack belongs to none";
  EXPECT_GT(summary.knee, 0) << "a constant that is off is off by bytes";

  int covered = 0;
  const std::vector<FitRow> next = simple_rows({.rows = 50, .base_mib = 1500, .seed = 77});
  for (const FitRow& row : next) {
    const Constants fitted = constants_of(summary.calibration());
    const Bytes predicted{static_cast<std::int64_t>(predict_device(row.replay, fitted.data()))};
    const PredictionInterval interval =
        prediction_interval(summary.calibration(), "another", predicted, 0.9);
    covered += interval.low <= *row.measured && *row.measured <= interval.high ? 1 : 0;
  }
  EXPECT_GE(covered, 45);
}

TEST(FitTest, TheFullReportNamesEveryCoefficientWithItsMeaning) {
  const FitSummary summary = fit_rows(simple_rows());
  for (const Coefficient& c : summary.calibration().coefficients) {
    EXPECT_THAT(summary.full(), HasSubstr(c.name));
    EXPECT_THAT(summary.full(), HasSubstr(describe_coefficient(c.name)));
    EXPECT_FALSE(describe_coefficient(c.name).empty()) << c.name;
  }
}

}  // namespace
}  // namespace memfathom::testing
