#include "core/json_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace memfathom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal_of(const std::string& text, const DocumentLimits& limits = {}) {
  try {
    parse_json_value(text, "x.json", limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "";
}

TEST(JsonValueTest, KeepsNumbersAsTheyAreWritten) {
  const nlohmann::json value = parse_json_value(R"({"a": 18446744073709551615, "b": 1.0})", "x");
  EXPECT_EQ(value["a"].get<std::uint64_t>(), 18446744073709551615U);
  EXPECT_TRUE(value["b"].is_number_float());
}

TEST(JsonValueTest, RefusesDeepNestingAtAnyDepth) {
  for (const int depth : {65, 60'000, 2'000'000}) {
    const auto count = static_cast<std::size_t>(depth);
    const std::string lists = std::string(count, '[') + std::string(count, ']');
    EXPECT_THAT(refusal_of(lists),
                AllOf(HasSubstr("x.json: "), HasSubstr("nested more than 64 levels")));
    EXPECT_THAT(refusal_of("{\"a\":" + lists + "}"), HasSubstr("nested more than 64 levels"));
  }
  EXPECT_EQ(refusal_of(std::string(64, '[') + std::string(64, ']')), "");
}

TEST(JsonValueTest, RefusesWhatIsTooLongOrNoJson) {
  EXPECT_THAT(refusal_of("[1, 2, 3]", {.max_file_bytes = 4}), HasSubstr("at most"));
  EXPECT_THAT(refusal_of("{\"a\": "), HasSubstr("x.json: not valid JSON"));
  EXPECT_THAT(refusal_of(""), HasSubstr("x.json: not valid JSON"));
  EXPECT_THAT(refusal_of("[\"\xe9\"]"), HasSubstr("not UTF-8"));
}

}  // namespace
}  // namespace memfathom
