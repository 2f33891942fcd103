// Every preset with every quantization, mode, checkpointing, with and without LoRA: an answer whose
// parts add up, or one sentence that says why there is none.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "estimator/answer/estimate.h"
#include "estimator/models/presets.h"
#include "kernels/framework/layers/builder.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

using nlohmann::json;

constexpr int kLayers = 2;
constexpr int kPatternLayers = 6;  // so that every kind of layer is there
constexpr int kExperts = 16;

struct ShortModel {
  std::string name;
  std::string model;  // of the job, with few layers where it has a configuration
  std::int64_t sequence_length = 32;

  friend void PrintTo(const ShortModel& shown, std::ostream* out) { *out << shown.name; }
};

bool is_any_of(std::string_view key, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

bool has_layer_pattern(const std::string& config) {
  const auto has = [&](const char* part) { return config.find(part) != std::string::npos; };
  return has("sliding_window") || has("global_attn") || has("no_rope");
}

// The same architecture with few layers and experts.
void shorten(json& config, int layers) {
  for (auto& [key, value] : config.items()) {
    if (value.is_object()) {
      shorten(value, layers);
    } else if (is_any_of(key, {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "depth",
                               "num_single_layers", "encoder_layers", "decoder_layers",
                               "num_decoder_layers"})) {
      value = std::min(value.get<int>(), layers);
    } else if (key == "first_k_dense_replace") {
      value = std::min(value.get<int>(), 1);
    } else if (is_any_of(key, {"n_routed_experts", "num_experts", "num_local_experts"})) {
      value = std::min(value.get<int>(), kExperts);
    } else if (is_any_of(key, {"fullatt_block_indexes", "deepstack_visual_indexes"})) {
      value = json::array({1});
    }
  }
}

// A configuration without its sizes: presets that differ in nothing else share it.
json without_sizes(const json& config) {
  if (config.is_number()) return "size";
  if (!config.is_structured()) return config;
  json shape = config;
  for (json& value : shape) value = without_sizes(value);
  return shape;
}

// One preset of each architecture; the first one listed is the smallest of most families.
std::vector<ShortModel> architectures() {
  std::map<std::string, ShortModel> chosen;
  for (const Preset& preset : presets()) {
    json config = json::parse(preset.config);
    const std::string text = config.dump();
    shorten(config, has_layer_pattern(text) ? kPatternLayers : kLayers);
    ShortModel model{std::string(preset.name), json{{"config", config}}.dump()};
    // In front of a language model, images take up positions; CLIP and SigLIP read short captions.
    const std::string type = config.value("model_type", "");
    if (config.contains("vision_config") && !is_any_of(type, {"clip", "siglip"}))
      model.sequence_length = 4096;
    chosen.emplace(without_sizes(config).dump(), std::move(model));
  }
  std::vector<ShortModel> all;
  for (const auto& entry : chosen) all.push_back(entry.second);
  return all;
}

struct Variant {
  Quantization quantization = Quantization::kNone;
  std::string_view mode = "train";
  bool lora = false;
  std::string_view checkpointing = R"("none")";

  std::string job(const ShortModel& of) const {
    return fmt::format(
        R"({{"model": {}, "training": {{"mode": "{}", "batch_size": 1, "sequence_length": {},
            "precision": "bf16", "quantization": "{}", "gradient_checkpointing": {}{}{}}}}})",
        of.model, mode, of.sequence_length, enum_name(quantization), checkpointing,
        lora ? R"(, "lora": {"rank": 4, "targets": "all-linear"})" : "",
        mode == "generate" ? R"(, "new_tokens": 3)" : "");
  }
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const auto& quantization : kEnumNames<Quantization>) {
    for (const std::string_view mode : {"train", "inference", "generate"}) {
      for (const bool lora : {false, true}) {
        for (const std::string_view checkpointing :
             {R"("none")", R"("full")", R"("full", "checkpoint_reentrant": true)",
              R"("selective")"})
          all.push_back({quantization.value, mode, lora, checkpointing});
      }
    }
  }
  return all;
}

void expect_consistent(const std::string& text) {
  SCOPED_TRACE(text);
  const Job job = read_job(parse_json(text, "job.json"));
  const Estimate estimate = make_estimate(job, run_dry(job, {}), {});
  Bytes sum;
  for (const ComponentLine& line : estimate.components) {
    EXPECT_GE(line.bytes.count(), 0);
    sum += line.bytes;
  }
  EXPECT_EQ(sum, estimate.totals.device_peak);
  EXPECT_GT(estimate.totals.allocated_peak.count(), 0);
  EXPECT_GE(estimate.totals.reserved_peak, estimate.totals.allocated_peak);
  EXPECT_GE(estimate.totals.device_peak, estimate.totals.reserved_peak);
}

void expect_consistent_or_refused(const std::string& text) {
  try {
    expect_consistent(text);
  } catch (const Error& error) {
    const std::string sentence = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::kInput) << sentence << "\n" << text;
    EXPECT_GT(sentence.size(), 20U) << text;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence << "\n" << text;
  }
}

class EveryPresetTest : public testing::TestWithParam<ShortModel> {};

TEST_P(EveryPresetTest, IsAnsweredAsItIsPublished) {
  for (const std::string_view mode : {"train", "inference"})
    EXPECT_NO_THROW(expect_consistent(Variant{.mode = mode}.job(GetParam()))) << mode;
}

TEST_P(EveryPresetTest, AddsUpOrIsRefusedInOneSentenceInEveryVariant) {
  for (const Variant& variant : variants()) expect_consistent_or_refused(variant.job(GetParam()));
}

std::string test_name(const testing::TestParamInfo<ShortModel>& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Presets, EveryPresetTest, testing::ValuesIn(architectures()), test_name);

}  // namespace
}  // namespace memfathom
