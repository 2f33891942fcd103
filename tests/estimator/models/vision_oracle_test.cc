#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/models/grid_presets.h"
#include "estimator/models/preset_names.h"
#include "tests/support/oracle_check.h"
#include "tests/support/paths.h"
#include "tests/support/registered_model.h"

namespace memfathom {
namespace {

constexpr std::array<std::string_view, 4> kGroups{"oracle/torchvision", "oracle/timm",
                                                  "oracle/unet2d-diffusers", "oracle/cogvideox"};

// A row's model is {preset}, {config}, or a module with one of them inside.
const Node& inner_model(const Node& model) {
  const Node* modules = model.find("modules");
  return modules != nullptr ? modules->items().front().at("model") : model;
}

// Here a row's `config` is the whole model node: presets have no config.
std::vector<OracleRow> vision_rows(std::string_view group) {
  std::ifstream file(shared_data().string() + "/oracle/jobs/models.jsonl");
  std::vector<OracleRow> rows;
  std::string line;
  while (std::getline(file, line)) {
    const Node row = parse_json(line, "models.jsonl");
    if (row.at("group").as_string() != group) continue;
    const Node& job = row.at("job");
    rows.push_back(
        {row.at("id").as_string(), inner_model(job.at("model")), job, row.at("expected")});
  }
  return rows;
}

std::unique_ptr<Network> make_vision(Builder& builder, const Node& model,
                                     const ModelSettings& settings) {
  const Node* preset = model.find("preset");
  if (preset == nullptr) return make_registered_model(builder, model.at("config"), settings);
  Node config = *partial_preset_config(normalized_preset(preset->as_string()));
  if (const Node* classes = model.find("num_classes")) config.set("num_classes", *classes);
  return make_registered_model(builder, config, settings);
}

class VisionOracleTest : public testing::TestWithParam<std::string_view> {};

TEST_P(VisionOracleTest, EveryRowAgreesWithinOnePercent) {
  const std::vector<OracleRow> rows = vision_rows(GetParam());
  ASSERT_GE(rows.size(), 5u) << "the oracle's rows are not where they should be";
  expect_rows_agree(rows, make_vision);
}

INSTANTIATE_TEST_SUITE_P(Groups, VisionOracleTest, testing::ValuesIn(kGroups),
                         [](const auto& tested) {
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
                                         TracedCase{"vit_base_autocast", "oracle/timm"},
                                         TracedCase{"ddpm_unet", "oracle/unet2d-diffusers"}),
                         [](const auto& tested) { return std::string(tested.param.trace); });

// The oracle's rows of plain networks are stacks of layers; our families say the same by a few
// keys.
struct FamilyCase {
  const char* name;
  const char* row;
  const char* config;
  const char* trace;  // null: none was recorded
  ParameterOrder order = ParameterOrder::kRecorded;
};

constexpr FamilyCase kFamilies[] = {
    {"mlp", "mlp-net/relu/l3/h1024/b128/fp32/adamw-foreach",
     R"({"model_type": "mlp", "in_features": 784, "width": 1024, "layers": 3, "out_features": 10})",
     "mlp"},
    {"cnn", "cnn-net/l3/b128/i32/c32/fp32/adamw-foreach",
     R"({"model_type": "cnn", "width": 32, "layers": 3, "num_classes": 10})", nullptr},
    {"unet", "unet-plain/l4/b4/i256/c64/fp32/adamw-foreach",
     R"({"model_type": "unet", "width": 64, "layers": 4, "out_channels": 2})", "unet_plain",
     ParameterOrder::kOther},
    {"classic_fno", "fno-classic/l4/b16/i64/c64/m16/fp32/adam-foreach",
     R"({"model_type": "fno", "style": "classic", "modes": 16, "width": 64})", nullptr},
    {"neuralop_fno", "fno-neuralop/l4/b16/i64/c64/m16/fp32/adamw-foreach",
     R"({"model_type": "fno", "style": "neuralop", "modes": [16, 16], "width": 64, "layers": 4})",
     "fno_2d", ParameterOrder::kOther},
};

class OwnFamilyTest : public testing::TestWithParam<FamilyCase> {};

TEST_P(OwnFamilyTest, IsTheOraclesNetworkOfThatShape) {
  const FamilyCase& tested = GetParam();
  std::vector<OracleRow> rows;
  for (const char* group : {"oracle/mlp-net", "oracle/cnn-net", "oracle/unet-plain",
                            "oracle/fno-classic", "oracle/fno-neuralop"}) {
    for (OracleRow& row : vision_rows(group)) {
      if (row.id == tested.row) rows.push_back(std::move(row));
    }
  }
  ASSERT_EQ(rows.size(), 1u) << tested.row;
  rows[0].config = parse_json(tested.config, tested.name);
  expect_rows_agree(rows, make_registered_model);
  if (tested.trace != nullptr)
    expect_trace_agrees(tested.trace, rows, make_registered_model, tested.order);
}

INSTANTIATE_TEST_SUITE_P(Families, OwnFamilyTest, testing::ValuesIn(kFamilies),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace memfathom
