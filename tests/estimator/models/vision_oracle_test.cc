#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/models/vision/families.h"
#include "tests/support/oracle_check.h"

namespace memfathom {
namespace {

constexpr std::array<std::string_view, 2> kGroups{"oracle/torchvision", "oracle/timm"};

// A row's model is {preset}, {config}, or a module with one of them inside.
const Node& inner_model(const Node& model) {
  const Node* modules = model.find("modules");
  return modules != nullptr ? modules->items().front().at("model") : model;
}

// Here a row's `config` is the whole model node: presets have no config.
std::vector<OracleRow> vision_rows(std::string_view group) {
  std::ifstream file(std::string(MEMFATHOM_SHARED_DIR) + "/oracle/jobs/models.jsonl");
  std::vector<OracleRow> rows;
  std::string line;
  while (std::getline(file, line)) {
    const Node row = parse_json(line, "models.jsonl");
    if (row.at("group").as_string() != group) continue;
    const Node& job = row.at("job");
    rows.push_back({row.at("id").as_string(), inner_model(job.at("model")), job, row.at("expected")});
  }
  return rows;
}

std::unique_ptr<Network> make_vision(Builder& builder, const Node& model, const ModelSettings& settings) {
  const Node* preset = model.find("preset");
  if (preset == nullptr) return make_vision_model(builder, model.at("config"), settings);
  return make_vision_preset(builder, normalized_preset(preset->as_string()), model, settings);
}

class VisionOracleTest : public testing::TestWithParam<std::string_view> {};

TEST_P(VisionOracleTest, EveryRowAgreesWithinOnePercent) {
  const std::vector<OracleRow> rows = vision_rows(GetParam());
  ASSERT_GE(rows.size(), 5u) << "the oracle's rows are not where they should be";
  expect_rows_agree(rows, make_vision);
}

INSTANTIATE_TEST_SUITE_P(Groups, VisionOracleTest, testing::ValuesIn(kGroups), [](const auto& tested) {
  std::string name(tested.param.substr(tested.param.find('/') + 1));
  std::erase(name, '-');
  return name;
});

struct TracedCase {
  const char* trace;
  std::string_view group;
};

class VisionTraceTest : public testing::TestWithParam<TracedCase> {};

TEST_P(VisionTraceTest, AllocatesAndFreesInTheOrderOfTheRecordedRun) {
  expect_trace_agrees(GetParam().trace, vision_rows(GetParam().group), make_vision);
}

INSTANTIATE_TEST_SUITE_P(Recorded, VisionTraceTest,
                         testing::Values(TracedCase{"resnet18", "oracle/torchvision"},
                                         TracedCase{"vit_base_autocast", "oracle/timm"}),
                         [](const auto& tested) { return std::string(tested.param.trace); });

}  // namespace
}  // namespace memfathom
