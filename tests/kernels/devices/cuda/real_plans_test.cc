// Plans of the installed cuDNN on the doubled device. A program of its own: the library keeps
// memory until the end, which a leak checker would report.
#include "kernels/devices/cuda/cuda_device.h"
#include "kernels/devices/selftest/harness.h"
#include "tests/kernels/devices/cuda/doubled.h"

namespace memfathom::cuda {
namespace {

class CudaRealPlansTest : public DoubledTest {};

// Where the real library is installed it plans for the doubled device, and everything is executed
// on its plans.
TEST_F(CudaRealPlansTest, ConvolutionsExecuteAndAgreeWithTheReference) {
  doubles::plan_with_real_cudnn(true);
  {
    CudaDevice device(0);
    selftest::Harness harness(device);
    selftest::convolution_cases(harness);
    const SelftestReport report = harness.take();
    for (const SelftestCase& result : report.cases)
      EXPECT_TRUE(result.passed()) << result.name << " " << result.failure;
  }
  doubles::plan_with_real_cudnn(false);
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
}

}  // namespace
}  // namespace memfathom::cuda
