#include "kernels/devices/selftest/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/devices/cpu/cpu_device.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/devices/selftest/harness.h"

namespace memfathom {
namespace {

TEST(SelftestTest, TheCpuDeviceAgreesWithTheReferenceInEveryCall) {
  CpuDevice device;
  const SelftestReport report = compare_with_reference(device);
  for (const SelftestCase& result : report.cases) {
    EXPECT_TRUE(result.passed()) << result.name << ": " << result.difference << " over "
                                 << result.tolerance << " " << result.failure;
  }
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.device, "cpu");
}

TEST(SelftestTest, RefusesADeviceThatDoesNotCompute) {
  DryDevice device;
  EXPECT_THROW(compare_with_reference(device), Error);
}

// A device that computes nothing acts as one with wrong results.
TEST(SelftestTest, AWrongNumberFailsItsCase) {
  DryDevice device;
  selftest::Harness harness(device);
  selftest::Tensors t;
  ElementwiseCall call{Elementwise::kFill, t.filled(DType::kFp32, {4}, 0), {}, {}, {}, {1}};
  harness.compare("fill", call, {&ElementwiseCall::out});
  const SelftestReport report = harness.take();
  EXPECT_EQ(report.failures(), 1);
  EXPECT_DOUBLE_EQ(report.cases.front().difference, 0.5);
}

TEST(SelftestTest, AReportWithoutCasesHasNotPassed) { EXPECT_FALSE(SelftestReport{}.passed()); }

}  // namespace
}  // namespace memfathom
