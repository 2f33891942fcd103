#include "estimator/models/vision/families.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "estimator/models/diffusion/cogvideox.h"
#include "estimator/models/diffusion/unet.h"
#include "estimator/models/vision/classifier_presets.h"
#include "estimator/models/vision/image_network.h"
#include "estimator/models/vision/own_families.h"
#include "estimator/models/vision/vggt.h"

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
    {"cogvideox-2b", 1693783872, "video diffusion transformer, diffusers"},
    {"cogvideox-5b", 5570283072, "video diffusion transformer, diffusers"},
    {"sd-1.5", 859520964, "Stable Diffusion 1.5's U-Net, diffusers"},
    {"sdxl", 2567463684, "Stable Diffusion XL's U-Net, diffusers"},
    {"ddpm-unet", 113673219, "U-Net of DDPM at 256 x 256, diffusers"},
    {"vggt-1b", 1190596120, "VGGT without its track head"},
};

// Presets that are configs: the keys that differ from the library's defaults.
struct ConfigPreset {
  std::string_view name;
  const char* config;
};

constexpr ConfigPreset kConfigPresets[] = {
    {"cogvideox-2b", R"({"_class_name": "CogVideoXTransformer3DModel"})"},
    {"cogvideox-5b",
     R"({"_class_name": "CogVideoXTransformer3DModel", "num_attention_heads": 48, "num_layers": 42,
                         "use_rotary_positional_embeddings": true})"},
    {"sd-1.5",
     R"({"_class_name": "UNet2DConditionModel", "sample_size": 64, "cross_attention_dim": 768})"},
    {"sdxl",
     R"({"_class_name": "UNet2DConditionModel", "sample_size": 128, "cross_attention_dim": 2048,
                 "attention_head_dim": [5, 10, 20], "block_out_channels": [320, 640, 1280],
                 "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
                 "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
                 "transformer_layers_per_block": [1, 2, 10], "use_linear_projection": true,
                 "addition_time_embed_dim": 256, "projection_class_embeddings_input_dim": 2816})"},
    {"ddpm-unet",
     R"({"_class_name": "UNet2DModel", "sample_size": 256, "block_out_channels": [128, 128, 256, 256, 512, 512],
                      "down_block_types": ["DownBlock2D", "DownBlock2D", "DownBlock2D", "DownBlock2D", "AttnDownBlock2D", "DownBlock2D"],
                      "up_block_types": ["UpBlock2D", "AttnUpBlock2D", "UpBlock2D", "UpBlock2D", "UpBlock2D", "UpBlock2D"],
                      "attention_head_dim": null, "norm_eps": 1e-6, "downsample_padding": 0})"},
    {"fno-2d",
     R"({"model_type": "fno", "style": "neuralop", "modes": [16, 16], "width": 64, "layers": 4})"},
    {"fno-3d",
     R"({"model_type": "fno", "style": "neuralop", "modes": [16, 16, 16], "width": 32, "layers": 4, "grid": [64, 64, 64]})"},
};

std::unique_ptr<Network> make_classifier(Builder& builder, const ClassifierPreset& preset,
                                         const Node& model, ModelSettings settings) {
  if (settings.image_height == 0) settings.image_height = settings.image_width = preset.image_size;
  if (preset.fixed_size &&
      (settings.image_height != preset.image_size || settings.image_width != preset.image_size)) {
    model.at("preset").refuse(
        fmt::format("it takes images of {} x {} only; leave training.image_size out",
                    preset.image_size, preset.image_size));
  }
  std::int64_t classes = 1000;
  if (const Node* node = model.find("num_classes")) classes = node->as_int(1, kMostClasses);
  const ImageContext context{builder, settings};
  Layer layers = preset.make(context, classes, preset.image_size);
  builder.finish();
  return make_image_network(
      builder.session(), settings, std::move(layers),
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

std::unique_ptr<Network> make_vision_preset(Builder& builder, std::string_view normalized_name,
                                            const Node& model, const ModelSettings& settings) {
  for (const ClassifierPreset& preset : classifier_presets()) {
    if (normalized_preset(preset.name) == normalized_name)
      return make_classifier(builder, preset, model, settings);
  }
  if (normalized_name == "vggt1b") {
    std::unique_ptr<Network> made = make_vggt(builder, model, settings);
    builder.finish();
    return made;
  }
  for (const ConfigPreset& preset : kConfigPresets) {
    if (normalized_preset(preset.name) != normalized_name) continue;
    return make_vision_model(builder, parse_json(preset.config, std::string(preset.name)),
                             settings);
  }
  return nullptr;
}

std::unique_ptr<Network> make_vision_model(Builder& builder, const Node& config,
                                           const ModelSettings& settings) {
  std::unique_ptr<Network> made;
  if (const Node* name = config.find("_class_name"); name != nullptr && name->is_string()) {
    const std::string& type = name->as_string();
    if (type == "CogVideoXTransformer3DModel") made = make_cogvideox(builder, config, settings);
    if (type == "UNet2DModel" || type == "UNet2DConditionModel")
      made = make_unet(builder, config, settings);
  } else {
    made = make_own_family(builder, config, settings);
  }
  if (made) builder.finish();
  return made;
}

std::span<const VisionPreset> vision_presets() { return kPresets; }

}  // namespace memfathom
