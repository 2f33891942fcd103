#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "estimator/models/grid_presets.h"
#include "estimator/models/preset_names.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/tensor/engine.h"
#include "kernels/memory/allocator/bare_allocator.h"
#include "tests/support/registered_model.h"

namespace memfathom {
namespace {

// A preset's network on the dry device.
struct PresetNetwork {
  explicit PresetNetwork(std::string_view name) {
    network = make_registered_model(builder, *partial_preset_config(normalized_preset(name)), {});
  }

  DryDevice device;
  BareAllocator allocator;
  Session session{device, allocator, device.workspaces(), FrameworkPolicy::for_stack("2.15", 80)};
  Builder builder{session, {}};
  std::unique_ptr<Network> network;
};

struct Built {
  std::int64_t parameters = 0;
  std::int64_t buffer_bytes = 0;
};

Built build(std::string_view name) {
  const PresetNetwork preset(name);
  EXPECT_NE(preset.network, nullptr) << name;
  Built built{preset.builder.parameter_count(), 0};
  for (const NamedTensor& buffer : preset.builder.buffers()) {
    built.buffer_bytes += size_of(buffer.tensor.shape(), buffer.tensor.dtype()).count();
  }
  return built;
}

struct ReferenceModel {
  const char* name;
  Built built;
};

// As the libraries count them: torchvision 0.29, timm 1.0.30 with 1000 classes, diffusers 0.42.
constexpr ReferenceModel kKnown[] = {
    {"resnet18", {11689512, 38560}},
    {"resnet34", {21797672, 68384}},
    {"resnet50", {25557032, 212904}},
    {"resnet101", {44549160, 422208}},
    {"resnet152", {60192808, 606936}},
    {"resnext50_32x4d", {25028904, 273320}},
    {"resnext101_32x8d", {88791336, 812352}},
    {"wide_resnet50_2", {68883240, 273320}},
    {"wide_resnet101_2", {126886696, 552256}},
    {"vgg11", {132863336, 0}},
    {"vgg13", {133047848, 0}},
    {"vgg16", {138357544, 0}},
    {"vgg19", {143667240, 0}},
    {"vgg11_bn", {132868840, 22080}},
    {"vgg13_bn", {133053736, 23632}},
    {"vgg16_bn", {138365992, 33896}},
    {"vgg19_bn", {143678248, 44160}},
    {"alexnet", {61100840, 0}},
    {"densenet121", {7978856, 335560}},
    {"densenet169", {14149480, 634952}},
    {"densenet201", {20013928, 917832}},
    {"densenet161", {28681000, 881032}},
    {"squeezenet1_0", {1248424, 0}},
    {"squeezenet1_1", {1235496, 0}},
    {"mobilenet_v2", {3504872, 136864}},
    {"mobilenet_v3_large", {5483032, 97968}},
    {"mobilenet_v3_small", {2542856, 48720}},
    {"efficientnet_b0", {5288548, 168456}},
    {"efficientnet_b1", {7794184, 248744}},
    {"efficientnet_b2", {9109994, 270824}},
    {"efficientnet_b3", {12233232, 349808}},
    {"efficientnet_b4", {19341616, 501568}},
    {"efficientnet_b5", {30389784, 691872}},
    {"efficientnet_b6", {43040704, 898800}},
    {"efficientnet_b7", {66347960, 1244184}},
    {"convnext_tiny", {28589128, 0}},
    {"convnext_small", {50223688, 0}},
    {"convnext_base", {88591464, 0}},
    {"convnext_large", {197767336, 0}},
    {"swin_t", {28288354, 230496}},
    {"swin_s", {49606258, 460992}},
    {"swin_b", {87768224, 460992}},
    {"vit_tiny_patch16_224", {5717416, 0}},
    {"vit_small_patch16_224", {22050664, 0}},
    {"vit_base_patch16_224", {86567656, 0}},
    {"vit_base_patch32_224", {88224232, 0}},
    {"vit_small_patch32_224", {22878952, 0}},
    {"vit_base_patch8_224", {86576872, 0}},
    {"vit_base_patch16_384", {86859496, 0}},
    {"vit_large_patch16_224", {304326632, 0}},
    {"vit_huge_patch14_224", {632045800, 0}},
    {"vit_large_patch32_224", {306535400, 0}},
    {"vit_large_patch14_224", {304203752, 0}},
    {"deit_tiny_patch16_224", {5717416, 0}},
    {"deit_small_patch16_224", {22050664, 0}},
    {"deit_base_patch16_224", {86567656, 0}},
    {"vit_b_16", {86567656, 0}},
    {"vit_b_32", {88224232, 0}},
    {"vit_l_16", {304326632, 0}},
    {"vit_l_32", {306535400, 0}},
    {"vit_h_14", {632045800, 0}},
    {"cogvideox-2b", {1693783872, 273039360}},
    {"cogvideox-5b", {5570283072, 0}},
    {"sd-1.5", {859520964, 0}},
    {"sdxl", {2567463684, 0}},
    {"ddpm-unet", {113673219, 0}},
};

TEST(VisionPresetsTest, EveryPresetHasTheParametersAndBuffersOfTheLibrary) {
  for (const ReferenceModel& known : kKnown) {
    const Built built = build(known.name);
    EXPECT_EQ(built.parameters, known.built.parameters) << known.name;
    EXPECT_EQ(built.buffer_bytes, known.built.buffer_bytes) << known.name;
  }
}

TEST(VisionPresetsTest, TheListedParameterCountsAreTheBuiltOnes) {
  for (const Preset* preset : grid_presets())
    EXPECT_EQ(build(preset->name).parameters, preset->parameters) << preset->name;
}

TEST(VisionPresetsTest, BackwardReachesEveryParameterOfEveryPreset) {
  for (const Preset* preset : grid_presets()) {
    PresetNetwork built(preset->name);
    ASSERT_NE(built.network, nullptr) << preset->name;
    built.network->load_batch(2, true);
    run_backward(built.network->loss(nullptr));
    for (const NamedTensor& parameter : built.builder.parameters()) {
      const bool unused =
          parameter.name.find("mask_token") != std::string::npos;  // DINOv2's is for pretraining
      EXPECT_EQ(parameter.tensor.grad().defined(), !unused)
          << preset->name << " " << parameter.name;
    }
  }
}

// `for x, y in loader:` lets go of a batch before the next one is copied.
TEST(VisionPresetsTest, ABatchGoesBeforeTheNextOneComes) {
  for (const Preset* preset : grid_presets()) {
    PresetNetwork built(preset->name);
    ASSERT_NE(built.network, nullptr) << preset->name;
    built.network->load_batch(2, true);
    const std::int64_t loaded = built.allocator.statistics().allocated_bytes.all.current;
    built.allocator.reset_peaks();
    built.network->load_batch(2, true);
    EXPECT_EQ(built.allocator.statistics().allocated_bytes.all.peak, loaded) << preset->name;
  }
}

TEST(VisionPresetsTest, VggtPredictsAPointForEachPixelOfEveryView) {
  DryDevice device;
  BareAllocator allocator;
  Session session(device, allocator, device.workspaces(), FrameworkPolicy::for_stack("2.15", 80));
  Builder builder(session, {});
  ModelSettings settings;
  settings.num_frames = 10;
  const std::unique_ptr<Network> network =
      make_registered_model(builder, *partial_preset_config("vggt1b"), settings);
  ASSERT_NE(network, nullptr);
  const NoGrad no_grad(session);
  session.training = false;
  network->load_batch(1, false);
  EXPECT_EQ(network->forward().shape(), (Shape{10, 518, 518, 3}));
}

TEST(VisionPresetsTest, NamesMayBeWrittenWithHyphensUnderscoresOrNeither) {
  EXPECT_EQ(normalized_preset("ResNet-18"), normalized_preset("resnet18"));
  EXPECT_EQ(normalized_preset("vit_base_patch16_224"), normalized_preset("vit-base-patch16-224"));
}

}  // namespace
}  // namespace memfathom
