#include "kernels/devices/element/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace memfathom::element {
namespace {

// The value of an fp16 pattern from the definition of the format.
double fp16_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return fraction ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

TEST(HalfTest, EveryFp16PatternIsReadAsTheFormatDefinesIt) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const double expected = fp16_value(static_cast<std::uint16_t>(bits));
    const double value = static_cast<double>(fp16_to_float(static_cast<std::uint16_t>(bits)));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else {
      ASSERT_EQ(value, expected) << bits;
    }
  }
}

TEST(HalfTest, EveryFp16PatternSurvivesARoundTripThroughFp32) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const std::uint16_t back = float_to_fp16(fp16_to_float(pattern));
    if ((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0) {
      ASSERT_TRUE((back & 0x7c00) == 0x7c00 && (back & 0x3ff) != 0) << bits;
    } else {
      ASSERT_EQ(back, pattern) << bits;
    }
  }
}

TEST(HalfTest, RoundsFp16ToNearestTiesToEven) {
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const float low = fp16_to_float(static_cast<std::uint16_t>(bits));
    const float high = fp16_to_float(static_cast<std::uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact: fp32 has thirteen more bits
    const int even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(float_to_fp16(middle), even) << bits;
    ASSERT_EQ(float_to_fp16(std::nextafter(middle, low)), bits);
    ASSERT_EQ(float_to_fp16(std::nextafter(middle, high)), bits + 1);
    ASSERT_EQ(float_to_fp16(-middle), even | 0x8000);
  }
}

TEST(HalfTest, Fp16OverflowsToInfinityFrom65520On) {
  EXPECT_EQ(float_to_fp16(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_fp16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_fp16(-1e30f), 0xfc00);
  EXPECT_EQ(float_to_fp16(std::numeric_limits<float>::infinity()), 0x7c00);
}

TEST(HalfTest, RoundsBf16ToNearestTiesToEven) {
  for (std::uint32_t bits = 0x0001; bits < 0x7f7f; ++bits) {
    const std::uint32_t middle = bits << 16 | 0x8000u;
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(float_to_bf16(float_of_bits(middle)), even);
    ASSERT_EQ(float_to_bf16(float_of_bits(middle - 1)), bits);
    ASSERT_EQ(float_to_bf16(float_of_bits(middle + 1)), bits + 1);
    ASSERT_EQ(float_to_bf16(bf16_to_float(static_cast<std::uint16_t>(bits))), bits);
  }
}

TEST(HalfTest, ANanStaysANanInBf16EvenIfItsPayloadIsInTheLowHalf) {
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(float_of_bits(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(float_of_bits(0xffffffffu)))));
  EXPECT_TRUE(std::isnan(fp16_to_float(float_to_fp16(float_of_bits(0x7f800001u)))));
}

TEST(HalfTest, TheLargestFp32RoundsToInfinityInBf16) {
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace memfathom::element
