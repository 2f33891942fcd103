#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "estimator/models/families/language/families.h"
#include "tests/support/oracle_check.h"

namespace memfathom {
namespace {

bool is_language_model(const std::string& type) {
  for (const std::string_view known : language_model_types()) {
    if (known == type) return true;
  }
  return false;
}

TEST(LanguageOracleTest, EveryLanguageModelOfTheOracleAgreesWithinOnePercent) {
  const std::vector<OracleRow> rows = read_oracle_rows(is_language_model);
  ASSERT_GE(rows.size(), 60u) << "the oracle's rows are not where they should be";
  expect_rows_agree(rows, make_language_model);
}

class LanguageTraceTest : public testing::TestWithParam<const char*> {};

TEST_P(LanguageTraceTest, AllocatesAndFreesInTheOrderOfTheRecordedRun) {
  expect_trace_agrees(GetParam(), read_oracle_rows(is_language_model), make_language_model);
}

INSTANTIATE_TEST_SUITE_P(Recorded, LanguageTraceTest,
                         testing::Values("gpt2_small", "llama_1b_lora", "llama_1b_checkpointing"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace memfathom
