#include "estimator/models/vision/families.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "estimator/models/vision/classifier_presets.h"
#include "estimator/models/vision/image_network.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMostClasses = std::int64_t{1} << 24;

constexpr VisionPreset kPresets[] = {
    {"resnet18", 11689512, "image classifier, torchvision"},
    {"resnet34", 21797672, "image classifier, torchvision"},
    {"resnet50", 25557032, "image classifier, torchvision"},
    {"resnet101", 44549160, "image classifier, torchvision"},
    {"resnet152", 60192808, "image classifier, torchvision"},
    {"resnext50_32x4d", 25028904, "image classifier, torchvision"},
    {"resnext101_32x8d", 88791336, "image classifier, torchvision"},
    {"wide_resnet50_2", 68883240, "image classifier, torchvision"},
    {"wide_resnet101_2", 126886696, "image classifier, torchvision"},
    {"vgg11", 132863336, "image classifier, torchvision"},
    {"vgg13", 133047848, "image classifier, torchvision"},
    {"vgg16", 138357544, "image classifier, torchvision"},
    {"vgg19", 143667240, "image classifier, torchvision"},
    {"vgg11_bn", 132868840, "image classifier, torchvision"},
    {"vgg13_bn", 133053736, "image classifier, torchvision"},
    {"vgg16_bn", 138365992, "image classifier, torchvision"},
    {"vgg19_bn", 143678248, "image classifier, torchvision"},
    {"alexnet", 61100840, "image classifier, torchvision"},
    {"densenet121", 7978856, "image classifier, torchvision"},
    {"densenet169", 14149480, "image classifier, torchvision"},
    {"densenet201", 20013928, "image classifier, torchvision"},
    {"densenet161", 28681000, "image classifier, torchvision"},
    {"squeezenet1_0", 1248424, "image classifier, torchvision"},
    {"squeezenet1_1", 1235496, "image classifier, torchvision"},
    {"mobilenet_v2", 3504872, "image classifier, torchvision"},
    {"mobilenet_v3_large", 5483032, "image classifier, torchvision"},
    {"mobilenet_v3_small", 2542856, "image classifier, torchvision"},
    {"efficientnet_b0", 5288548, "image classifier, torchvision"},
    {"efficientnet_b1", 7794184, "image classifier, torchvision"},
    {"efficientnet_b2", 9109994, "image classifier, torchvision"},
    {"efficientnet_b3", 12233232, "image classifier, torchvision"},
    {"efficientnet_b4", 19341616, "image classifier, torchvision"},
    {"efficientnet_b5", 30389784, "image classifier, torchvision"},
    {"efficientnet_b6", 43040704, "image classifier, torchvision"},
    {"efficientnet_b7", 66347960, "image classifier, torchvision"},
    {"convnext_tiny", 28589128, "image classifier, torchvision"},
    {"convnext_small", 50223688, "image classifier, torchvision"},
    {"convnext_base", 88591464, "image classifier, torchvision"},
    {"convnext_large", 197767336, "image classifier, torchvision"},
    {"swin_t", 28288354, "image classifier, torchvision"},
    {"swin_s", 49606258, "image classifier, torchvision"},
    {"swin_b", 87768224, "image classifier, torchvision"},
    {"vit_tiny_patch16_224", 5717416, "image classifier, timm"},
    {"vit_small_patch16_224", 22050664, "image classifier, timm"},
    {"vit_base_patch16_224", 86567656, "image classifier, timm"},
    {"vit_base_patch32_224", 88224232, "image classifier, timm"},
    {"vit_base_patch16_384", 86859496, "image classifier, timm"},
    {"vit_large_patch16_224", 304326632, "image classifier, timm"},
    {"vit_huge_patch14_224", 632045800, "image classifier, timm"},
    {"vit_b_16", 86567656, "image classifier, torchvision"},
    {"vit_b_32", 88224232, "image classifier, torchvision"},
    {"vit_l_16", 304326632, "image classifier, torchvision"},
    {"vit_l_32", 306535400, "image classifier, torchvision"},
    {"vit_h_14", 632045800, "image classifier, torchvision"},
};

std::unique_ptr<Network> make_classifier(Builder& builder, const ClassifierPreset& preset, const Node& model,
                                         ModelSettings settings) {
  if (settings.image_height == 0) settings.image_height = settings.image_width = preset.image_size;
  if (preset.fixed_size && (settings.image_height != preset.image_size || settings.image_width != preset.image_size)) {
    model.at("preset").refuse(fmt::format("it takes images of {} x {} only; leave training.image_size out",
                                          preset.image_size, preset.image_size));
  }
  std::int64_t classes = 1000;
  if (const Node* node = model.find("num_classes")) classes = node->as_int(1, kMostClasses);
  const ImageContext context{builder, settings};
  Layer layers = preset.make(context, classes, preset.image_size);
  builder.finish();
  return make_image_network(builder.session(), settings, std::move(layers),
                            {{3, settings.image_height, settings.image_width}, {classes}, LossKind::kCrossEntropy});
}

}  // namespace

std::string normalized_preset(std::string_view name) {
  std::string normalized;
  for (const char c : name) {
    if (c == '-' || c == '_' || c == '.' || c == ' ') continue;
    normalized.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return normalized;
}

std::unique_ptr<Network> make_vision_preset(Builder& builder, std::string_view normalized_name, const Node& model,
                                            const ModelSettings& settings) {
  for (const ClassifierPreset& preset : classifier_presets()) {
    if (normalized_preset(preset.name) == normalized_name) return make_classifier(builder, preset, model, settings);
  }
  return nullptr;
}

std::unique_ptr<Network> make_vision_model(Builder&, const Node&, const ModelSettings&) { return nullptr; }

std::span<const VisionPreset> vision_presets() { return kPresets; }

}  // namespace memfathom
