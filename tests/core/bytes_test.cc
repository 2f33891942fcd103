#include "core/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"

namespace memfathom {
namespace {

using namespace literals;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

TEST(BytesTest, ReadsTheUnitsOfTheContract) {
  EXPECT_EQ(parse_bytes("24GiB"), 24_GiB);
  EXPECT_EQ(parse_bytes("24GB"), Bytes{24'000'000'000});
  EXPECT_EQ(parse_bytes("24576MiB"), 24_GiB);
  EXPECT_EQ(parse_bytes("1.5 GiB"), Bytes{1610612736});
  EXPECT_EQ(parse_bytes(" 512B "), 512_B);
  EXPECT_EQ(parse_bytes("0 B"), 0_B);
  EXPECT_EQ(parse_bytes("2TiB"), 2048_GiB);
  EXPECT_EQ(parse_bytes("3kB"), Bytes{3000});
}

TEST(BytesTest, RefusesInvalidSizes) {
  for (const char* text :
       {"", " ", "24", "GiB", "-1GiB", "+1GiB", "1,5GiB", "1e3MiB", "24gib", "24 GiB free",
        "1.2.3GiB", ".", ".GiB", "0x10MiB", "24G", "nanGiB", "infB"}) {
    EXPECT_THROW(parse_bytes(text), Error) << '"' << text << '"';
  }
}

TEST(BytesTest, ReadsUpToTheLargestNumberAndNotBeyond) {
  EXPECT_EQ(parse_bytes("9223372036854775807B"), Bytes{kMost});
  EXPECT_THROW(parse_bytes("9223372036854775808B"), Error);
  EXPECT_EQ(parse_bytes("8388607TiB"), Bytes{8388607LL << 40});
  EXPECT_THROW(parse_bytes("8388608TiB"), Error);
  EXPECT_THROW(parse_bytes("8388608.0TiB"), Error);
  EXPECT_THROW(parse_bytes("99999999999999999999999.5B"), Error);
}

TEST(BytesTest, ArithmeticIsExactAtTheLimitsAndThrowsBeyond) {
  EXPECT_EQ(Bytes{kMost - 1} + 1_B, Bytes{kMost});
  EXPECT_THROW(Bytes{kMost} + 1_B, Error);
  EXPECT_EQ(Bytes{kLeast + 1} - 1_B, Bytes{kLeast});
  EXPECT_THROW(Bytes{kLeast} - 1_B, Error);
  EXPECT_THROW(-Bytes{kLeast}, Error);
  EXPECT_EQ(-Bytes{kMost}, Bytes{-kMost});
  EXPECT_EQ(Bytes{kMost / 2} * 2, Bytes{kMost - 1});
  EXPECT_THROW(Bytes{kMost / 2 + 1} * 2, Error);
  EXPECT_THROW(Bytes{kLeast} * -1, Error);
}

TEST(BytesTest, RoundsUpToMultiples) {
  EXPECT_EQ(Bytes{0}.rounded_up(512_B), 0_B);
  EXPECT_EQ(Bytes{1}.rounded_up(512_B), 512_B);
  EXPECT_EQ(Bytes{512}.rounded_up(512_B), 512_B);
  EXPECT_EQ(Bytes{513}.rounded_up(512_B), 1_KiB);
  EXPECT_THROW(Bytes{kMost}.rounded_up(512_B), Error);
}

TEST(BytesTest, PrintsTheLargestSuitableUnit) {
  EXPECT_EQ(to_string(0_B), "0 B");
  EXPECT_EQ(to_string(1023_B), "1023 B");
  EXPECT_EQ(to_string(1_KiB), "1.00 KiB");
  EXPECT_EQ(to_string(Bytes{(1 << 20) - 1}), "1024.00 KiB");
  EXPECT_EQ(to_string(1_MiB), "1.00 MiB");
  EXPECT_EQ(to_string(Bytes{14753120256}), "13.74 GiB");
  EXPECT_EQ(to_string(-Bytes{14753120256}), "-13.74 GiB");
  EXPECT_EQ(to_string(Bytes{kLeast}), "-8589934592.00 GiB");
}

TEST(BytesTest, ErrorsNameTheTextAndTheExpectedForm) {
  try {
    parse_bytes("24 XB");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_STREQ(error.what(),
                 "\"24 XB\" is not a size: the unit \"XB\" is unknown; write for example 24GiB, "
                 "24GB or 24576MiB");
  }
}

}  // namespace
}  // namespace memfathom
