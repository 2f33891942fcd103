#include "fitter/diff.h"

#include <gtest/gtest.h>

namespace memfathom {
namespace {

constexpr double kMiB = 1 << 20;

Calibration calibration(std::vector<Coefficient> coefficients, const std::string& driver) {
  Calibration result;
  result.name = "a100-40gb/pytorch";
  result.environment.driver = driver;
  result.coefficients = std::move(coefficients);
  return result;
}

Coefficient bytes(const std::string& name, double value, double error, bool prior_only = false) {
  return {name, value * kMiB, error * kMiB, "bytes", Source::kFitted, prior_only, 10};
}

TEST(DiffTest, ReportsChangesLargerThanTheErrors) {
  const Calibration before =
      calibration({bytes("context", 400, 3), bytes("module.cudnn", 300, 10)}, "550");
  const Calibration after =
      calibration({bytes("context", 460, 4), bytes("module.cudnn", 310, 10)}, "570");
  const std::vector<CoefficientChange> changes = diff(before, after);
  EXPECT_EQ(changes[0].change, Change::kMoved);
  EXPECT_NEAR(changes[0].standard_error / kMiB, 5, 1e-9);
  EXPECT_NEAR(changes[0].z, 12, 1e-9);
  EXPECT_EQ(changes[1].change, Change::kSame);
  EXPECT_EQ(environment_change(before.environment, after.environment), "driver 550 -> 570");
}

TEST(DiffTest, NeverReportsAPriorAsChanged) {
  const Calibration before = calibration({bytes("module.cufft", 0, 100, true)}, "550");
  const Calibration after = calibration({bytes("module.cufft", 80, 2)}, "550");
  EXPECT_EQ(diff(before, after)[0].change, Change::kUndecided);
}

TEST(DiffTest, ReportsAddedAndRemovedCoefficients) {
  const Calibration before = calibration({bytes("phi.cudnn.a.input", 1, 1)}, "550");
  const Calibration after = calibration({bytes("phi.cudnn.b.input", 1, 1)}, "550");
  const std::vector<CoefficientChange> changes = diff(before, after);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].change, Change::kVanished);
  EXPECT_EQ(changes[1].change, Change::kAppeared);
}

TEST(DiffTest, ReportsEqualEnvironments) {
  EXPECT_EQ(environment_change({}, {}), "the environments are the same");
}

}  // namespace
}  // namespace memfathom
