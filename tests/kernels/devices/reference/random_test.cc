#include "kernels/devices/element/random.h"

#include <gtest/gtest.h>

namespace memfathom::element {
namespace {

// The published answers of Philox 4x32 with ten rounds for all zeros, all ones and digits of pi.
TEST(RandomTest, PhiloxMatchesThePublishedVectors) {
  const Draw zeros = philox(0, 0, 0);
  EXPECT_EQ(zeros.word[0], 0x6627e8d5u);
  EXPECT_EQ(zeros.word[1], 0xe169c58du);
  EXPECT_EQ(zeros.word[2], 0xbc57ac4cu);
  EXPECT_EQ(zeros.word[3], 0x9b00dbd8u);
  const Draw ones = philox(~0ull, ~0ull, ~0ull);
  EXPECT_EQ(ones.word[0], 0x408f276du);
  EXPECT_EQ(ones.word[1], 0x41c83b0eu);
  EXPECT_EQ(ones.word[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.word[3], 0x6d5451fdu);
  const Draw pi = philox(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull);
  EXPECT_EQ(pi.word[0], 0xd16cfe09u);
  EXPECT_EQ(pi.word[1], 0x94fdccebu);
  EXPECT_EQ(pi.word[2], 0x5001e420u);
  EXPECT_EQ(pi.word[3], 0x24126ea1u);
}

TEST(RandomTest, NeighboursDifferAndEqualSeedsRepeat) {
  EXPECT_EQ(uniform(7, 3, 1000), uniform(7, 3, 1000));
  EXPECT_NE(uniform(7, 3, 1000), uniform(7, 3, 1001));
  EXPECT_NE(uniform(7, 3, 1000), uniform(7, 4, 1000));
  EXPECT_NE(uniform(7, 3, 1000), uniform(8, 3, 1000));
}

TEST(RandomTest, DrawsAreUniformWithinFourStandardErrors) {
  constexpr int kDraws = 100000;
  double sum = 0;
  int kept = 0;
  for (int i = 0; i < kDraws; ++i) {
    const float u = uniform(42, 0, static_cast<std::uint64_t>(i));
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += static_cast<double>(u);
    kept += dropout_keeps(42, 0, static_cast<std::uint64_t>(i), 0.3) ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 4 * 0.2887 / 316.2);
  EXPECT_NEAR(static_cast<double>(kept) / kDraws, 0.7, 4 * 0.4583 / 316.2);
}

TEST(RandomTest, DropoutWithProbabilityZeroKeepsAllAndWithOneKeepsNone) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_TRUE(dropout_keeps(1, 2, i, 0.0));
    EXPECT_FALSE(dropout_keeps(1, 2, i, 1.0));
  }
}

}  // namespace
}  // namespace memfathom::element
