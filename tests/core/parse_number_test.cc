#include "core/parse_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace memfathom {
namespace {

TEST(ParseNumberTest, ReadsOnlyWholeTexts) {
  EXPECT_EQ(parse_number<double>("0.25"), 0.25);
  EXPECT_EQ(parse_number<std::int64_t>("-7"), -7);
  for (const char* text : {"", " 1", "1 ", "1,5", "5%", "0x10", "+1", "one"})
    EXPECT_EQ(parse_number<double>(text), std::nullopt) << text;
}

TEST(ParseNumberTest, RefusesOverflowAndNonFiniteNumbers) {
  for (const char* text : {"1e400", "inf", "nan"})
    EXPECT_EQ(parse_number<double>(text), std::nullopt) << text;
  EXPECT_EQ(parse_number<std::int64_t>("9223372036854775808"), std::nullopt);
}

}  // namespace
}  // namespace memfathom
