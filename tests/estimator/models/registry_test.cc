#include "estimator/models/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "core/key_recorder.h"
#include "estimator/models/presets.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/memory/allocator/bare_allocator.h"
#include "tests/support/registered_model.h"

namespace memfathom {
namespace {

Node config_with(const char* key, const char* value) {
  Node config = Node::map();
  config.set(key, Node::string(value));
  return config;
}

TEST(RegistryTest, HasOneRowForEachName) {
  std::set<std::pair<std::string_view, bool>> names;
  for (const ModelFamily& family : model_families()) {
    const bool is_class_name = family.kind == ModelKind::kDiffusion;
    EXPECT_TRUE(names.emplace(family.name, is_class_name).second) << family.name;
  }
}

TEST(RegistryTest, EveryRowCanBeBuilt) {
  for (const ModelFamily& family : model_families()) {
    const bool reads_images = family.kind == ModelKind::kMultimodal;
    EXPECT_EQ(family.make == nullptr, reads_images) << family.name;
    EXPECT_EQ(family.images.make != nullptr, reads_images) << family.name;
    EXPECT_FALSE(family.traits.lora_targets[0].empty()) << family.name;
    EXPECT_FALSE(family.traits.positions.key.empty()) << family.name;
  }
}

TEST(RegistryTest, FindsFamiliesByModelTypeOrClassName) {
  ASSERT_NE(find_family(config_with("model_type", "qwen3")), nullptr);
  EXPECT_EQ(find_family(config_with("model_type", "qwen3"))->traits.since, (Version{4, 51}));
  ASSERT_NE(find_family(config_with("_class_name", "UNet2DModel")), nullptr);
  EXPECT_EQ(find_family(config_with("model_type", "UNet2DModel")), nullptr);
  EXPECT_EQ(find_family(config_with("_class_name", "qwen3")), nullptr);
  EXPECT_EQ(find_family(config_with("model_type", "mamba")), nullptr);
  EXPECT_EQ(find_family(Node::map()), nullptr);
}

TEST(RegistryTest, TakesTheOlderClassOfDitForDit) {
  Node config = config_with("_class_name", "Transformer2DModel");
  EXPECT_EQ(find_family(config), nullptr);
  config.set("norm_type", Node::string("ada_norm_zero"));
  ASSERT_NE(find_family(config), nullptr);
  EXPECT_EQ(find_family(config)->name, "DiTTransformer2DModel");
}

TEST(RegistryTest, AnUnknownFamilyHasTheTraitsOfTheOneItsNameBeginsWith) {
  EXPECT_EQ(traits_of(config_with("model_type", "t5gemma")).lora_targets, (LoraTargets{"q", "v"}));
  EXPECT_EQ(traits_of(config_with("model_type", "mamba")).lora_targets,
            (LoraTargets{"q_proj", "v_proj"}));
}

// TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING of PEFT 0.21.2; where it has no entry, the
// names of the queries and values in the family's own modules.
TEST(RegistryTest, LoraTargetsArePeftsOrTheFamilysOwnQueriesAndValues) {
  const auto targets = [](const char* type) {
    return traits_of(config_with("model_type", type)).lora_targets;
  };
  EXPECT_EQ(targets("electra"), (LoraTargets{"query", "value"}));
  EXPECT_EQ(targets("xlm-roberta"), (LoraTargets{"query", "value"}));
  EXPECT_EQ(targets("deberta-v2"), (LoraTargets{"query_proj", "value_proj"}));
  EXPECT_EQ(targets("gpt_bigcode"), (LoraTargets{"c_attn"}));
  EXPECT_EQ(targets("mpt"), (LoraTargets{"Wqkv"}));
  EXPECT_EQ(targets("codegen"), (LoraTargets{"qkv_proj"}));
  EXPECT_EQ(targets("phi"), (LoraTargets{"q_proj", "v_proj", "fc1", "fc2"}));
  EXPECT_EQ(targets("distilbert"), (LoraTargets{"q_lin", "v_lin"}));
  EXPECT_EQ(targets("qwen"), (LoraTargets{"c_attn"}));
  for (const char* name : {"DiTTransformer2DModel", "FluxTransformer2DModel"})
    EXPECT_EQ(traits_of(config_with("_class_name", name)).lora_targets,
              (LoraTargets{"to_q", "to_v"}));
}

// What a later command needs to name the keys of a config.json that an estimate does not use.
TEST(RegistryTest, TheKeysThatAFamilyReadsCanBeRecorded) {
  const Node config = parse_json(
      R"({"model_type": "phi", "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2,
          "num_attention_heads": 4, "vocab_size": 100, "torch_dtype": "float16", "wobble": 3})",
      "config.json");
  DryDevice device;
  BareAllocator allocator;
  Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
  Builder builder(session, {});
  ModelSettings settings;
  settings.sequence_length = 8;
  const KeyRecorder recorder;
  EXPECT_NE(make_registered_model(builder, config, settings), nullptr);
  EXPECT_THAT(recorder.unread_keys(config), testing::ElementsAre("torch_dtype", "wobble"));
}

TEST(PresetFilesTest, NameSourceAndLicenceOfAModelOfARegisteredFamily) {
  EXPECT_GE(presets().size(), 176u);
  for (const Preset& preset : presets()) {
    EXPECT_FALSE(preset.description.empty()) << preset.name;
    EXPECT_TRUE(preset.source.starts_with("https://")) << preset.name;
    EXPECT_FALSE(preset.licence.empty()) << preset.name;
    EXPECT_EQ(preset.is_partial, preset.parameters > 0) << preset.name;
    const Node config = parse_json(preset.config, std::string(preset.name));
    EXPECT_NE(find_family(config), nullptr) << preset.name;
  }
}

}  // namespace
}  // namespace memfathom
