#include "estimator/models/families/vision/classifiers/classifier_presets.h"

#include "estimator/models/families/vision/classifiers/classifiers.h"

namespace memfathom {
namespace {

template <bool kBottleneck, std::int64_t kFirst, std::int64_t kSecond, std::int64_t kThird,
          std::int64_t kFourth, std::int64_t kGroups = 1, std::int64_t kWidth = 64>
Layer resnet(const ImageContext& context, std::int64_t classes, std::int64_t) {
  return make_resnet(context, classes,
                     {kBottleneck, {kFirst, kSecond, kThird, kFourth}, kGroups, kWidth});
}

// Convolutions per stage; every stage ends with a pooling.
template <bool kBatchNorm, int kFirst, int kLater>
Layer vgg(const ImageContext& context, std::int64_t classes, std::int64_t) {
  std::vector<std::int64_t> widths;
  constexpr int kCounts[] = {kFirst, kFirst, kLater, kLater, kLater};
  constexpr std::int64_t kWidths[] = {64, 128, 256, 512, 512};
  for (int stage = 0; stage < 5; ++stage) {
    widths.insert(widths.end(), static_cast<std::size_t>(kCounts[stage]), kWidths[stage]);
    widths.push_back(0);
  }
  return make_vgg(context, classes, widths, kBatchNorm);
}

Layer alexnet(const ImageContext& context, std::int64_t classes, std::int64_t) {
  return make_alexnet(context, classes);
}

template <std::int64_t kThird, std::int64_t kFourth, std::int64_t kGrowth = 32,
          std::int64_t kStem = 64>
Layer densenet(const ImageContext& context, std::int64_t classes, std::int64_t) {
  return make_densenet(context, classes, {kGrowth, kStem, {6, 12, kThird, kFourth}});
}

template <bool kFirstVersion>
Layer squeezenet(const ImageContext& context, std::int64_t classes, std::int64_t) {
  return make_squeezenet(context, classes, kFirstVersion);
}

Layer googlenet(const ImageContext& context, std::int64_t classes, std::int64_t) {
  return make_googlenet(context, classes);
}

Layer inception_v3(const ImageContext& context, std::int64_t classes, std::int64_t) {
  return make_inception_v3(context, classes);
}

Layer mobilenet_v2(const ImageContext& context, std::int64_t classes, std::int64_t) {
  return make_mobilenet_v2(context, classes);
}

template <bool kLarge>
Layer mobilenet_v3(const ImageContext& context, std::int64_t classes, std::int64_t) {
  return make_mobilenet_v3(context, classes, kLarge);
}

// Width, depth and dropout in tenths.
template <int kWidth, int kDepth, int kDropout>
Layer efficientnet(const ImageContext& context, std::int64_t classes, std::int64_t) {
  return make_efficientnet(context, classes, {kWidth / 10.0, kDepth / 10.0, kDropout / 10.0});
}

template <EfficientNetSize kSize>
Layer efficientnet_v2(const ImageContext& context, std::int64_t classes, std::int64_t) {
  return make_efficientnet_v2(context, classes, kSize);
}

template <std::int64_t kWidth, std::int64_t kThird, int kDepthTenths>
Layer convnext(const ImageContext& context, std::int64_t classes, std::int64_t) {
  return make_convnext(context, classes, {kWidth, kThird, kDepthTenths / 10.0});
}

template <std::int64_t kWidth, std::int64_t kHeads, std::int64_t kThird, int kDepthTenths>
Layer swin(const ImageContext& context, std::int64_t classes, std::int64_t) {
  return make_swin(context, classes, {kWidth, kHeads, kThird, kDepthTenths / 10.0});
}

template <std::int64_t kWidth, std::int64_t kDepth, std::int64_t kHeads, std::int64_t kPatch>
Layer vit(const ImageContext& context, std::int64_t classes, std::int64_t image_size) {
  return make_vit(context, classes, {kWidth, kDepth, kHeads, kPatch, image_size});
}

template <std::int64_t kWidth, std::int64_t kDepth, std::int64_t kHeads, std::int64_t kPatch>
Layer torchvision_vit(const ImageContext& context, std::int64_t classes, std::int64_t image_size) {
  return make_torchvision_vit(context, classes, {kWidth, kDepth, kHeads, kPatch, image_size});
}

template <std::int64_t kWidth, std::int64_t kDepth, std::int64_t kPatch>
Layer mixer(const ImageContext& context, std::int64_t classes, std::int64_t image_size) {
  return make_mixer(context, classes, {kWidth, kDepth, 1, kPatch, image_size});
}

constexpr std::string_view kTorchvision = "image classifier, torchvision";
constexpr std::string_view kTimm = "image classifier, timm";

constexpr LoraTargets kQkv{"qkv", ""};

constexpr ClassifierPreset kPresets[] = {
    {"resnet18", 11689512, kTorchvision, 224, false, resnet<false, 2, 2, 2, 2>},
    {"resnet34", 21797672, kTorchvision, 224, false, resnet<false, 3, 4, 6, 3>},
    {"resnet50", 25557032, kTorchvision, 224, false, resnet<true, 3, 4, 6, 3>},
    {"resnet101", 44549160, kTorchvision, 224, false, resnet<true, 3, 4, 23, 3>},
    {"resnet152", 60192808, kTorchvision, 224, false, resnet<true, 3, 8, 36, 3>},
    {"resnext50_32x4d", 25028904, kTorchvision, 224, false, resnet<true, 3, 4, 6, 3, 32, 4>},
    {"resnext101_32x8d", 88791336, kTorchvision, 224, false, resnet<true, 3, 4, 23, 3, 32, 8>},
    {"wide_resnet50_2", 68883240, kTorchvision, 224, false, resnet<true, 3, 4, 6, 3, 1, 128>},
    {"wide_resnet101_2", 126886696, kTorchvision, 224, false, resnet<true, 3, 4, 23, 3, 1, 128>},
    {"vgg11", 132863336, kTorchvision, 224, false, vgg<false, 1, 2>},
    {"vgg13", 133047848, kTorchvision, 224, false, vgg<false, 2, 2>},
    {"vgg16", 138357544, kTorchvision, 224, false, vgg<false, 2, 3>},
    {"vgg19", 143667240, kTorchvision, 224, false, vgg<false, 2, 4>},
    {"vgg11_bn", 132868840, kTorchvision, 224, false, vgg<true, 1, 2>},
    {"vgg13_bn", 133053736, kTorchvision, 224, false, vgg<true, 2, 2>},
    {"vgg16_bn", 138365992, kTorchvision, 224, false, vgg<true, 2, 3>},
    {"vgg19_bn", 143678248, kTorchvision, 224, false, vgg<true, 2, 4>},
    {"alexnet", 61100840, kTorchvision, 224, false, alexnet},
    {"densenet121", 7978856, kTorchvision, 224, false, densenet<24, 16>},
    {"densenet169", 14149480, kTorchvision, 224, false, densenet<32, 32>},
    {"densenet201", 20013928, kTorchvision, 224, false, densenet<48, 32>},
    {"densenet161", 28681000, kTorchvision, 224, false, densenet<36, 24, 48, 96>},
    {"squeezenet1_0", 1248424, kTorchvision, 224, false, squeezenet<true>},
    {"squeezenet1_1", 1235496, kTorchvision, 224, false, squeezenet<false>},
    {"googlenet", 13004888, kTorchvision, 224, false, googlenet},
    {"inception_v3", 27161264, kTorchvision, 299, false, inception_v3},
    {"mobilenet_v2", 3504872, kTorchvision, 224, false, mobilenet_v2},
    {"mobilenet_v3_large", 5483032, kTorchvision, 224, false, mobilenet_v3<true>},
    {"mobilenet_v3_small", 2542856, kTorchvision, 224, false, mobilenet_v3<false>},
    {"efficientnet_b0", 5288548, kTorchvision, 224, false, efficientnet<10, 10, 2>},
    {"efficientnet_b1", 7794184, kTorchvision, 240, false, efficientnet<10, 11, 2>},
    {"efficientnet_b2", 9109994, kTorchvision, 288, false, efficientnet<11, 12, 3>},
    {"efficientnet_b3", 12233232, kTorchvision, 300, false, efficientnet<12, 14, 3>},
    {"efficientnet_b4", 19341616, kTorchvision, 380, false, efficientnet<14, 18, 4>},
    {"efficientnet_b5", 30389784, kTorchvision, 456, false, efficientnet<16, 22, 4>},
    {"efficientnet_b6", 43040704, kTorchvision, 528, false, efficientnet<18, 26, 5>},
    {"efficientnet_b7", 66347960, kTorchvision, 600, false, efficientnet<20, 31, 5>},
    {"efficientnet_v2_s", 21458488, kTorchvision, 384, false,
     efficientnet_v2<EfficientNetSize::kSmall>},
    {"efficientnet_v2_m", 54139356, kTorchvision, 480, false,
     efficientnet_v2<EfficientNetSize::kMedium>},
    {"efficientnet_v2_l", 118515272, kTorchvision, 480, false,
     efficientnet_v2<EfficientNetSize::kLarge>},
    {"convnext_tiny", 28589128, kTorchvision, 224, false, convnext<96, 9, 1>},
    {"convnext_small", 50223688, kTorchvision, 224, false, convnext<96, 27, 4>},
    {"convnext_base", 88591464, kTorchvision, 224, false, convnext<128, 27, 5>},
    {"convnext_large", 197767336, kTorchvision, 224, false, convnext<192, 27, 5>},
    {"swin_t", 28288354, kTorchvision, 224, false, swin<96, 3, 6, 2>},
    {"swin_s", 49606258, kTorchvision, 224, false, swin<96, 3, 18, 3>},
    {"swin_b", 87768224, kTorchvision, 224, false, swin<128, 4, 18, 5>},
    {"vit_tiny_patch16_224", 5717416, kTimm, 224, true, vit<192, 12, 3, 16>, kQkv},
    {"vit_small_patch16_224", 22050664, kTimm, 224, true, vit<384, 12, 6, 16>, kQkv},
    {"vit_base_patch16_224", 86567656, kTimm, 224, true, vit<768, 12, 12, 16>, kQkv},
    {"vit_base_patch32_224", 88224232, kTimm, 224, true, vit<768, 12, 12, 32>, kQkv},
    {"vit_small_patch32_224", 22878952, kTimm, 224, true, vit<384, 12, 6, 32>, kQkv},
    {"vit_base_patch8_224", 86576872, kTimm, 224, true, vit<768, 12, 12, 8>, kQkv},
    {"vit_base_patch16_384", 86859496, kTimm, 384, true, vit<768, 12, 12, 16>, kQkv},
    {"vit_large_patch16_224", 304326632, kTimm, 224, true, vit<1024, 24, 16, 16>, kQkv},
    {"vit_huge_patch14_224", 632045800, kTimm, 224, true, vit<1280, 32, 16, 14>, kQkv},
    {"vit_large_patch32_224", 306535400, kTimm, 224, true, vit<1024, 24, 16, 32>, kQkv},
    {"vit_large_patch14_224", 304203752, kTimm, 224, true, vit<1024, 24, 16, 14>, kQkv},
    {"deit_tiny_patch16_224", 5717416, kTimm, 224, true, vit<192, 12, 3, 16>},
    {"deit_small_patch16_224", 22050664, kTimm, 224, true, vit<384, 12, 6, 16>},
    {"deit_base_patch16_224", 86567656, kTimm, 224, true, vit<768, 12, 12, 16>},
    {"mixer_s32_224", 19104624, kTimm, 224, true, mixer<512, 8, 32>},
    {"mixer_s16_224", 18528264, kTimm, 224, true, mixer<512, 8, 16>},
    {"mixer_b32_224", 60293428, kTimm, 224, true, mixer<768, 12, 32>},
    {"mixer_b16_224", 59880472, kTimm, 224, true, mixer<768, 12, 16>},
    {"mixer_l16_224", 208196168, kTimm, 224, true, mixer<1024, 24, 16>},
    {"vit_b_16", 86567656, kTorchvision, 224, true, torchvision_vit<768, 12, 12, 16>, kQkv},
    {"vit_b_32", 88224232, kTorchvision, 224, true, torchvision_vit<768, 12, 12, 32>, kQkv},
    {"vit_l_16", 304326632, kTorchvision, 224, true, torchvision_vit<1024, 24, 16, 16>, kQkv},
    {"vit_l_32", 306535400, kTorchvision, 224, true, torchvision_vit<1024, 24, 16, 32>, kQkv},
    {"vit_h_14", 632045800, kTorchvision, 224, true, torchvision_vit<1280, 32, 16, 14>, kQkv},
};

}  // namespace

std::span<const ClassifierPreset> classifier_presets() { return kPresets; }

}  // namespace memfathom
