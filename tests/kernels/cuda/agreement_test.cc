// Every kind of call on the doubled CUDA device agrees with the reference, and nothing is refused
// or left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/cuda_device.h"
#include "kernels/selftest/selftest.h"
#include "tests/kernels/cuda/doubles/control.h"

namespace memfathom::cuda {
namespace {

TEST(CudaAgreementTest, EveryCallAgreesWithTheReferenceLoops) {
  doubles::reset();
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

}  // namespace
}  // namespace memfathom::cuda
