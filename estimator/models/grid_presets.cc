// Presets of the grid families.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "estimator/models/blocks/image_network.h"
#include "estimator/models/families/vision/classifier_presets.h"
#include "estimator/models/families/vision/vggt.h"
#include "estimator/models/grid_families.h"
#include "estimator/models/preset_names.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxClasses = std::int64_t{1} << 24;

// Beside the classifiers.
constexpr GridPreset kPresets[] = {
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
  if (const Node* node = model.find("num_classes")) classes = node->as_int(1, kMaxClasses);
  const ImageContext context{builder, settings};
  Layer layers = preset.make(context, classes, preset.image_size);
  builder.finish();
  return make_image_network(
      builder.session(), settings, std::move(layers),
      {{3, settings.image_height, settings.image_width}, {classes}, LossKind::kCrossEntropy});
}

}  // namespace

std::unique_ptr<Network> make_grid_preset(Builder& builder, std::string_view normalized_name,
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
    return make_grid_model(builder, parse_json(preset.config, std::string(preset.name)), settings);
  }
  return nullptr;
}

std::span<const GridPreset> grid_presets() {
  static const std::vector<GridPreset> kAll = [] {
    std::vector<GridPreset> all;
    for (const ClassifierPreset& preset : classifier_presets())
      all.push_back({preset.name, preset.parameters, preset.description});
    all.insert(all.end(), std::begin(kPresets), std::end(kPresets));
    return all;
  }();
  return kAll;
}

}  // namespace memfathom
