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

}  // namespace
}  // namespace memfathom
