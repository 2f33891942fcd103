#include "core/quantile.h"

#include <gtest/gtest.h>

namespace memfathom {
namespace {

TEST(MedianTest, HandlesOddEvenAndEmptyInput) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
}

TEST(MedianTest, AveragesTheMiddleValuesOfAnEvenCount) {
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({9, 1, 3}), 3);
}

TEST(QuantileTest, ReturnsAnObservedValue) {
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.5), 2);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.9), 4);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_EQ(quantile({}, 0.5), 0);
}

}  // namespace
}  // namespace memfathom
