#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "estimator/models/registry.h"
#include "tests/support/oracle_check.h"
#include "tests/support/registered_model.h"

namespace memfathom {
namespace {

bool is_language_model(const std::string& type) { return find_language_family(type) != nullptr; }

TEST(LanguageOracleTest, EveryLanguageModelOfTheOracleAgreesWithinOnePercent) {
  const std::vector<OracleRow> rows = read_oracle_rows(is_language_model);
  ASSERT_GE(rows.size(), 60u) << "the oracle's rows are not where they should be";
  expect_rows_agree(rows, make_registered_model);
}

class LanguageTraceTest : public testing::TestWithParam<const char*> {};

TEST_P(LanguageTraceTest, AllocatesAndFreesInTheOrderOfTheRecordedRun) {
  expect_trace_agrees(GetParam(), read_oracle_rows(is_language_model), make_registered_model);
}

INSTANTIATE_TEST_SUITE_P(Recorded, LanguageTraceTest,
                         testing::Values("gpt2_small", "llama_1b_lora", "llama_1b_checkpointing"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace memfathom
