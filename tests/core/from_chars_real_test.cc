#include "core/from_chars_real.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <random>
#include <string>
#include <system_error>

namespace memfathom {
namespace {

// The same value to the last bit, the same end and the same error.
template <typename Real>
void expect_as_standard(const std::string& text) {
  const char* const last = text.data() + text.size();
  Real expected = 7, read = 7;
  const std::from_chars_result standard = std::from_chars(text.data(), last, expected);
  const std::from_chars_result ours = from_chars_by_strtod(text.data(), last, read);
  EXPECT_EQ(ours.ec, standard.ec) << text;
  EXPECT_EQ(ours.ptr - text.data(), standard.ptr - text.data()) << text;
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(read)) << text;
  } else {
    EXPECT_EQ(read, expected) << text;
    EXPECT_EQ(std::signbit(read), std::signbit(expected)) << text;
  }
}

void expect_both_as_standard(const std::string& text) {
  expect_as_standard<double>(text);
  expect_as_standard<float>(text);
}

TEST(FromCharsRealTest, StrtodReadsWhatTheStandardReads) {
  for (const char* text : {"",
                           "-",
                           "+1",
                           ".",
                           ".e5",
                           "1",
                           "-0",
                           "0.1",
                           ".5",
                           "5.",
                           "1.e5",
                           "1e",
                           "1e+",
                           "1e-",
                           "1e5x",
                           "0x10",
                           " 1",
                           "1 ",
                           "1,5",
                           "inf",
                           "-inf",
                           "infinit",
                           "Infinity",
                           "NaN",
                           "nano",
                           "1e38",
                           "1e39",
                           "1e-45",
                           "1e-46",
                           "1e308",
                           "1e309",
                           "-1e400",
                           "1e-320",
                           "1e-400",
                           "0e999999",
                           "4.9e-324",
                           "2e-324",
                           "2.2250738585072011e-308",
                           "9007199254740993",
                           "123456789012345678901234567890"})
    expect_both_as_standard(text);
}

TEST(FromCharsRealTest, StrtodRoundsAsTheStandardDoes) {
  std::mt19937_64 random(27);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = std::to_string(random());
    text.insert(random() % text.size(), ".");
    text += "e" + std::to_string(static_cast<int>(random() % 640) - 320);
    expect_both_as_standard(text);
  }
}

}  // namespace
}  // namespace memfathom
