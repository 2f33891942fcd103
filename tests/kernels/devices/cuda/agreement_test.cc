// Every kind of call on the doubled CUDA device agrees with the reference, and nothing is refused
// or left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/devices/cuda/cuda_device.h"
#include "kernels/devices/selftest/selftest.h"
#include "tests/kernels/devices/cuda/doubles/control.h"

namespace memfathom::cuda {
namespace {

void expect_agreement(const doubles::Machine& machine) {
  doubles::reset(machine);
  {
    CudaDevice device(0);
    const SelftestReport report = compare_with_reference(device);
    for (const SelftestCase& result : report.cases) {
      EXPECT_TRUE(result.passed()) << result.name << ": " << result.difference << " over "
                                   << result.tolerance << " " << result.failure;
    }
    EXPECT_TRUE(report.passed());
    EXPECT_GT(report.cases.size(), 500U);
  }
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
  EXPECT_THAT(doubles::leaks(), testing::IsEmpty());
}

TEST(CudaAgreementTest, EveryCallAgreesWithTheReferenceLoops) { expect_agreement({}); }

// cuDNN has neither fused attention nor convolutions of bf16 for it.
TEST(CudaAgreementTest, EveryCallAgreesOnAGpuBeforeAmpere) {
  expect_agreement({.name = "Tesla T4", .major = 7, .minor = 5});
}

// GPUs from Ampere on convolve fp32 in TF32; the self-test must not report that as an error.
TEST(CudaAgreementTest, EveryCallAgreesOnAGpuWithTf32Convolutions) {
  expect_agreement({.tf32 = true});
}

}  // namespace
}  // namespace memfathom::cuda
