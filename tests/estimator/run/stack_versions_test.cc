#include "estimator/run/stack_versions.h"

#include <gtest/gtest.h>

namespace memfathom {
namespace {

TEST(StackVersionsTest, PyTorchBeforeTwoAsksCudnnInTheOlderWayOnEveryCard) {
  EXPECT_TRUE(asks_older_cudnn("1.13.1", 86));
  EXPECT_TRUE(asks_older_cudnn("1.12.1", 70));
  EXPECT_FALSE(asks_older_cudnn("2.0.0", 86));
  EXPECT_FALSE(asks_older_cudnn("2.4.1", 70));
}

TEST(StackVersionsTest, AStackNobodyNamesIsOfTheTimeOfItsCard) {
  EXPECT_TRUE(asks_older_cudnn("", 70));
  EXPECT_FALSE(asks_older_cudnn("", 75));
  EXPECT_FALSE(asks_older_cudnn("", 80));
}

TEST(StackVersionsTest, LibrariesOfNoGivenVersionAreOfTheTimeOfPyTorch) {
  FrameworkPolicy policy = FrameworkPolicy::for_stack("2.1.1", 80);
  Job job;
  apply_stack(job, policy);
  EXPECT_LT(job.training.settings.transformers_version, 436);
  EXPECT_TRUE(policy.bitsandbytes_keeps_input);
}

TEST(StackVersionsTest, BitsandbytesMayBeTodaysUnlessTheJobNamesIt) {
  FrameworkPolicy policy = FrameworkPolicy::for_stack("2.1.1", 80);
  Job job;
  apply_stack(job, policy, Bitsandbytes::kTodays);
  EXPECT_LT(job.training.settings.transformers_version, 436);
  EXPECT_FALSE(policy.bitsandbytes_keeps_input);
  job.target.stack.bitsandbytes = "0.41.1";
  apply_stack(job, policy, Bitsandbytes::kTodays);
  EXPECT_TRUE(policy.bitsandbytes_keeps_input);
}

}  // namespace
}  // namespace memfathom
