#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/coefficients.h"
#include "fitter/priors.h"
#include "tests/fitter/simple_rows.h"

namespace memfathom::testing {
namespace {

using ::testing::HasSubstr;

Calibration sibling(const std::string& framework) {
  FitOptions options = simple_options();
  options.name = "sibling";
  options.environment.framework = framework;
  return fit_rows(simple_rows({.rows = 90, .base_mib = 500, .cudnn_mib = 250}), options)
      .calibration();
}

TEST(PriorTest, UsesASiblingsPriorForAModuleWithoutRows) {
  const Calibration parent = sibling("memfathom");
  const FitSummary summary = fit_rows(simple_rows(), simple_options(), &parent);
  const Coefficient& cudnn = coefficient(summary, "module.cudnn");
  EXPECT_TRUE(cudnn.prior_only);
  EXPECT_NEAR(cudnn.value / kMiB, 250, 5);
  EXPECT_GT(cudnn.standard_error / kMiB, 20) << "siblings differ by about a tenth";
  EXPECT_THAT(summary.full(), HasSubstr("priors from the sibling \"sibling\""));
}

TEST(PriorTest, DataOutweighASibling) {
  const Calibration parent = sibling("memfathom");
  const FitSummary summary = fit_rows(simple_rows(), simple_options(), &parent);
  EXPECT_NEAR(coefficient(summary, "context").value / kMiB, 1000, 3);
  EXPECT_LT(summary.pull[kBase], 0.01);
}

TEST(PriorTest, ShrinksFewNoisyRowsTowardsTheSiblingAndReportsIt) {
  const Calibration parent = sibling("memfathom");
  const std::vector<FitRow> rows = simple_rows({.rows = 8, .base_mib = 560, .noise_mib = 120});
  const FitSummary alone = fit_rows(rows);
  const FitSummary helped = fit_rows(rows, simple_options(), &parent);
  EXPECT_GT(helped.pull[kBase], 0.1);
  EXPECT_LT(std::abs(coefficient(helped, "context").value / kMiB - 500),
            std::abs(coefficient(alone, "context").value / kMiB - 500));
}

TEST(PriorTest, ACalibrationOfAnotherArchitectureIsNotUsed) {
  Calibration parent = sibling("memfathom");
  parent.environment.architecture = "sm_90";
  const FitSummary summary = fit_rows(simple_rows(), simple_options(), &parent);
  EXPECT_NE(coefficient(summary, "module.cudnn").value / kMiB, 250);
  EXPECT_THAT(summary.full(), HasSubstr("is of sm_90, not sm_80: not used"));
}

TEST(PriorTest, ContextAndFrameworkAreOneSumWithoutASibling) {
  FitOptions options = simple_options();
  options.environment.framework = "pytorch";
  const FitSummary summary = fit_rows(simple_rows(), options);
  EXPECT_NEAR(coefficient(summary, "context").value / kMiB, 1000, 3);
  EXPECT_EQ(coefficient(summary, "framework").value, 0);
  EXPECT_TRUE(coefficient(summary, "framework").prior_only);
  EXPECT_THAT(summary.full(),
              HasSubstr("one framework determines only the sum of context and framework"));
}

TEST(PriorTest, OurOwnCalibrationSeparatesContextFromFramework) {
  const Calibration ours = sibling("memfathom");
  FitOptions options = simple_options();
  options.environment.framework = "pytorch";
  const FitSummary summary = fit_rows(simple_rows(), options, &ours);
  const Coefficient& context = coefficient(summary, "context");
  const Coefficient& framework = coefficient(summary, "framework");
  EXPECT_NEAR(context.value / kMiB, 500, 5);
  EXPECT_TRUE(context.prior_only) << "these rows alone do not tell it";
  EXPECT_NEAR((context.value + framework.value) / kMiB, 1000, 3);

  const std::size_t n = summary.calibration().coefficients.size();
  const std::vector<double>& covariance = summary.calibration().covariance;
  ASSERT_EQ(covariance.size(), n * n);
  const double of_the_sum = covariance[0] + covariance[n + 1] + covariance[1] + covariance[n];
  EXPECT_LT(std::sqrt(of_the_sum) / kMiB, 3) << "the sum is known far better than its parts";
}

TEST(PriorTest, NeverFitsARealGpuToVirtualSamples) {
  Calibration parent = sibling("memfathom");
  parent.environment.architecture = "virtual";
  EXPECT_EQ(constant_priors(simple_options(), &parent).priors[kFirstModule + 1].mean,
            default_of(module_of(kFirstModule + 1), "memfathom").value);
}

}  // namespace
}  // namespace memfathom::testing
