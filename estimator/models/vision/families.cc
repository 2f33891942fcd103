#include "estimator/models/vision/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "estimator/models/diffusion/autoencoder.h"
#include "estimator/models/diffusion/cogvideox.h"
#include "estimator/models/diffusion/dit.h"
#include "estimator/models/diffusion/flux.h"
#include "estimator/models/diffusion/unet.h"
#include "estimator/models/diffusion/video_autoencoder.h"
#include "estimator/models/vision/classifier_presets.h"
#include "estimator/models/vision/clip.h"
#include "estimator/models/vision/dinov2.h"
#include "estimator/models/vision/image_network.h"
#include "estimator/models/vision/own_families.h"
#include "estimator/models/vision/siglip.h"
#include "estimator/models/vision/vggt.h"
#include "estimator/models/vision/vision_transformer.h"

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
    {"googlenet", 13004888, "image classifier, torchvision"},
    {"inception_v3", 27161264, "image classifier, torchvision"},
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
    {"efficientnet_v2_s", 21458488, "image classifier, torchvision"},
    {"efficientnet_v2_m", 54139356, "image classifier, torchvision"},
    {"efficientnet_v2_l", 118515272, "image classifier, torchvision"},
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
    {"vit_small_patch32_224", 22878952, "image classifier, timm"},
    {"vit_base_patch8_224", 86576872, "image classifier, timm"},
    {"vit_base_patch16_384", 86859496, "image classifier, timm"},
    {"vit_large_patch16_224", 304326632, "image classifier, timm"},
    {"vit_huge_patch14_224", 632045800, "image classifier, timm"},
    {"vit_large_patch32_224", 306535400, "image classifier, timm"},
    {"vit_large_patch14_224", 304203752, "image classifier, timm"},
    {"deit_tiny_patch16_224", 5717416, "image classifier, timm"},
    {"deit_small_patch16_224", 22050664, "image classifier, timm"},
    {"deit_base_patch16_224", 86567656, "image classifier, timm"},
    {"mixer_s32_224", 19104624, "image classifier, timm"},
    {"mixer_s16_224", 18528264, "image classifier, timm"},
    {"mixer_b32_224", 60293428, "image classifier, timm"},
    {"mixer_b16_224", 59880472, "image classifier, timm"},
    {"mixer_l16_224", 208196168, "image classifier, timm"},
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
    {"dit-xl-2", 749826464, "DiT-XL/2 at 256 x 256, diffusers"},
    {"flux.1-dev", 11901408320, "Flux.1 dev's transformer, diffusers"},
    {"flux.1-schnell", 11891178560, "Flux.1 schnell's transformer, diffusers"},
    {"flux-vae", 83819683, "autoencoder of Flux, diffusers"},
    {"sdxl-vae", 83653863, "autoencoder of Stable Diffusion XL, diffusers"},
    {"cogvideox-vae", 215583907, "autoencoder of CogVideoX, diffusers"},
    {"sd-vae", 83653863, "autoencoder of Stable Diffusion 1.x, diffusers"},
    {"clip-vit-base-patch32", 151277313, "CLIP, both towers, transformers"},
    {"clip-vit-large-patch14", 427616513, "CLIP, both towers, transformers"},
    {"clip-text-large", 123060480, "text tower of CLIP-L: Stable Diffusion 1.x's text encoder"},
    {"fno-2d", 2410433, "Fourier neural operator, neuraloperator"},
    {"fno-3d", 9450529, "Fourier neural operator, neuraloperator"},
    {"vggt-1b", 1190596120, "VGGT without its track head"},
};

// Other names that people use, both sides normalized.
struct Alias {
  std::string_view name, preset;
};

constexpr Alias kAliases[] = {
    {"vitb", "vitbasepatch16224"},
    {"vitbase", "vitbasepatch16224"},
    {"vitl", "vitlargepatch16224"},
    {"vitlarge", "vitlargepatch16224"},
    {"vith", "vithugepatch14224"},
    {"vithuge", "vithugepatch14224"},
    {"sd15unet", "sd15"},
    {"stablediffusion15", "sd15"},
    {"stablediffusionv15", "sd15"},
    {"sdxlunet", "sdxl"},
    {"stablediffusionxl", "sdxl"},
    {"ddpm", "ddpmunet"},
    {"flux", "flux1dev"},
    {"fluxdev", "flux1dev"},
    {"fluxschnell", "flux1schnell"},
    {"vggt", "vggt1b"},
    {"ditxl2256", "ditxl2"},
    {"bertbaseuncased", "bertbase"},
    {"bertlargeuncased", "bertlarge"},
    {"inception", "inceptionv3"},
    // Trained further, of the same shape.
    {"qwen25coder05b", "qwen2505b"},
    {"qwen25coder15b", "qwen2515b"},
    {"qwen25coder3b", "qwen253b"},
    {"qwen25coder7b", "qwen257b"},
    {"qwen25coder14b", "qwen2514b"},
    {"qwen25coder32b", "qwen2532b"},
    {"qwen25math15b", "qwen2515b"},
    {"qwen25math7b", "qwen257b"},
    {"qwen25math72b", "qwen2572b"},
    {"deepseekr1distillqwen7b", "qwen257b"},
    {"deepseekr1distillqwen14b", "qwen2514b"},
    {"deepseekr1distillqwen32b", "qwen2532b"},
    {"deepseekr1distillllama8b", "llama318b"},
    {"deepseekr1distillllama70b", "llama3370b"},
    {"deepseekr1", "deepseekv3"},
    {"qwq32b", "qwen2532b"},
    {"vicuna7b", "llama27b"},
    {"vicuna13b", "llama213b"},
    {"phi35mini", "phi3mini"},
    {"qwen3coder30ba3b", "qwen330ba3b"},
    {"stablediffusionxlbase10", "sdxl"},
    {"mistralsmall324b", "mistralsmall24b"},
    {"paligemma3bpt224", "paligemma3b224"},
    {"paligemma3bmix224", "paligemma3b224"},
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
    {"dit-xl-2", R"({"_class_name": "DiTTransformer2DModel", "out_channels": 8})"},
    {"flux.1-dev", R"({"_class_name": "FluxTransformer2DModel", "guidance_embeds": true})"},
    {"flux.1-schnell", R"({"_class_name": "FluxTransformer2DModel"})"},
    {"flux-vae",
     R"({"_class_name": "AutoencoderKL", "block_out_channels": [128, 256, 512, 512], "layers_per_block": 2, "sample_size": 1024,
         "latent_channels": 16, "use_quant_conv": false, "use_post_quant_conv": false})"},
    {"sdxl-vae",
     R"({"_class_name": "AutoencoderKL", "block_out_channels": [128, 256, 512, 512], "layers_per_block": 2, "sample_size": 1024})"},
    {"cogvideox-vae", R"({"_class_name": "AutoencoderKLCogVideoX"})"},
    {"sd-vae",
     R"({"_class_name": "AutoencoderKL", "block_out_channels": [128, 256, 512, 512], "layers_per_block": 2, "sample_size": 512})"},
    {"clip-vit-base-patch32", R"({"model_type": "clip"})"},
    {"clip-vit-large-patch14",
     R"({"model_type": "clip", "projection_dim": 768,
         "text_config": {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12},
         "vision_config": {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "patch_size": 14}})"},
    {"clip-text-large",
     R"({"model_type": "clip_text_model", "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12})"},
    {"fno-2d",
     R"({"model_type": "fno", "style": "neuralop", "modes": [16, 16], "width": 64, "layers": 4})"},
    {"fno-3d",
     R"({"model_type": "fno", "style": "neuralop", "modes": [16, 16, 16], "width": 32, "layers": 4, "grid": [64, 64, 64]})"},
};

// Published DiT weights name diffusers' older class for all transformers over images.
bool is_dit(const Node& config, const std::string& class_name) {
  const Node* norm = config.find("norm_type");
  return class_name == "Transformer2DModel" && norm != nullptr && norm->is_string() &&
         norm->as_string() == "ada_norm_zero";
}

struct DiffusersClass {
  std::string_view name;
  std::unique_ptr<Network> (*make)(Builder&, const Node&, const ModelSettings&);
  bool encodes = false;  // pictures to latents and back
};

constexpr DiffusersClass kClasses[] = {
    {"AutoencoderKL", make_autoencoder, true},
    {"AutoencoderKLCogVideoX", make_video_autoencoder, true},
    {"CogVideoXTransformer3DModel", make_cogvideox},
    {"DiTTransformer2DModel", make_dit},
    {"FluxTransformer2DModel", make_flux},
    {"UNet2DConditionModel", make_unet},
    {"UNet2DModel", make_unet},
};

struct ModelType {
  std::string_view name;
  std::unique_ptr<Network> (*make)(Builder&, const Node&, const ModelSettings&);
};

// transformers'
constexpr ModelType kModelTypes[] = {
    {"clip", make_clip},
    {"clip_text_model", make_clip},
    {"clip_vision_model", make_clip},
    {"dinov2", make_dinov2},
    {"dinov2_with_registers", make_dinov2},
    {"siglip", make_siglip},
    {"siglip_text_model", make_siglip},
    {"siglip_vision_model", make_siglip},
    {"vit", make_vision_transformer},
};

const DiffusersClass* diffusers_class(const Node& config) {
  const Node* name = config.find("_class_name");
  if (name == nullptr || !name->is_string()) return nullptr;
  const std::string_view wanted = is_dit(config, name->as_string())
                                      ? std::string_view("DiTTransformer2DModel")
                                      : std::string_view(name->as_string());
  const auto* found = std::find_if(std::begin(kClasses), std::end(kClasses),
                                   [&](const DiffusersClass& c) { return c.name == wanted; });
  return found == std::end(kClasses) ? nullptr : found;
}

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
  for (const Alias& alias : kAliases) {
    if (normalized == alias.name) return std::string(alias.preset);
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
  if (const DiffusersClass* known = diffusers_class(config)) {
    made = known->make(builder, config, settings);
  } else if (const Node* model_type = config.find("model_type");
             model_type != nullptr && model_type->is_string()) {
    const std::string& type = model_type->as_string();
    const auto* family = std::find_if(std::begin(kModelTypes), std::end(kModelTypes),
                                      [&](const ModelType& one) { return one.name == type; });
    made = family != std::end(kModelTypes) ? family->make(builder, config, settings)
                                           : make_own_family(builder, config, settings);
  }
  if (made) builder.finish();
  return made;
}

bool is_autoencoder(const Node& config) {
  const DiffusersClass* known = diffusers_class(config);
  return known != nullptr && known->encodes;
}

std::span<const VisionPreset> vision_presets() { return kPresets; }

}  // namespace memfathom
