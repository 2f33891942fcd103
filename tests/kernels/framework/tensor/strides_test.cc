#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 40;

TEST(StridesTest, GrowFromTheLastDimensionOfAContiguousTensor) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), Shape({12, 4, 1}));
  EXPECT_EQ(channels_last_strides({2, 3, 4, 5}), Shape({60, 1, 15, 3}));
}

TEST(StridesTest, CountAnEmptyDimensionAsOne) {
  EXPECT_EQ(contiguous_strides({2, 0, 4}), Shape({4, 4, 1}));
}

TEST(StridesTest, RefuseExtentsThatOverflow) {
  EXPECT_THROW(contiguous_strides({kHuge, kHuge}), Error);
  EXPECT_THROW(channels_last_strides({1, kHuge, kHuge, 1}), Error);
  EXPECT_NO_THROW(contiguous_strides({0, kHuge, kHuge}));
}

}  // namespace
}  // namespace memfathom
