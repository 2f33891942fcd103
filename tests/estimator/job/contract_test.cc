// docs/contract.md has every key that is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "core/component.h"
#include "estimator/job/read_job.h"
#include "estimator/models/stack/layer_types.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

std::string contract() {
  std::ifstream file(project_directory() / "docs" / "contract.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ContractTest, NamesEveryKeyOfTraining) {
  const std::string text = contract();
  for (const std::string_view key : training_keys())
    EXPECT_THAT(text, HasSubstr("`" + std::string(key) + "`"));
}

TEST(ContractTest, NamesEveryTypeOfLayer) {
  const std::string text = contract();
  for (const std::string_view type : layer_types())
    EXPECT_THAT(text, ContainsRegex("\n\\|[^|]*[ ,]" + std::string(type) + "[ ,]"));
}

TEST(ContractTest, NamesEveryComponent) {
  const std::string text = contract();
  for (const std::string_view name : kNamesOf<Component>) EXPECT_THAT(text, HasSubstr(name));
}

}  // namespace
}  // namespace memfathom
