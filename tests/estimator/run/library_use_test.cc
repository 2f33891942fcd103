// Which operations load cuDNN, as PyTorch chooses its kernels.
#include <gtest/gtest.h>

#include <string>

#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

bool uses_cudnn(const std::string& shape, const std::string& layers,
                const std::string& precision = "fp32", const std::string& torch = "",
                int batch = 4) {
  const Job job =
      read_job(parse_json(R"({"model": {"input": {"shape": )" + shape + R"(}, "layers": [)" +
                              layers + R"(]}, "training": {"batch_size": )" +
                              std::to_string(batch) + R"(, "precision": ")" + precision + R"("}})",
                          "job.json"));
  DryRunOptions options;
  options.policy = FrameworkPolicy::for_stack(torch, 80);
  return run_dry(job, options).uses_cudnn;
}

const char* const kBatchNorm = R"({"type": "batch_norm"})";

TEST(LibraryUseTest, BatchNormWithoutPositionsIsNativeSinceOneNine) {
  EXPECT_FALSE(uses_cudnn("[8]", kBatchNorm));
  EXPECT_FALSE(uses_cudnn("[8]", kBatchNorm, "fp32", "1.9"));
  EXPECT_TRUE(uses_cudnn("[8]", kBatchNorm, "fp32", "1.8.1"));
  EXPECT_TRUE(uses_cudnn("[8, 6, 6]", kBatchNorm));
}

TEST(LibraryUseTest, BatchNormWithoutPositionsHadABoundOfItsOwn) {
  EXPECT_TRUE(uses_cudnn("[8]", kBatchNorm, "fp32", "1.8.1", 131070));
  EXPECT_FALSE(uses_cudnn("[8]", kBatchNorm, "fp32", "1.8.1", 131071));
  EXPECT_TRUE(uses_cudnn("[8, 2]", kBatchNorm, "fp32", "1.8.1", 131071));
}

TEST(LibraryUseTest, SixteenBitBatchNormIsNative) {
  EXPECT_FALSE(uses_cudnn("[8, 6, 6]", kBatchNorm, "bf16"));
  EXPECT_FALSE(uses_cudnn("[8, 6, 6]", kBatchNorm, "fp16"));
}

TEST(LibraryUseTest, DepthwiseConvolutionsInFp32AreNative) {
  EXPECT_TRUE(uses_cudnn("[8, 6, 6]", R"({"type": "conv2d", "out": 8, "kernel": 3})"));
  EXPECT_FALSE(
      uses_cudnn("[8, 6, 6]", R"({"type": "conv2d", "out": 8, "kernel": 3, "groups": 8})"));
}

}  // namespace
}  // namespace memfathom
