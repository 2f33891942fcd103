#include "estimator/models/grid_families.h"

#include <algorithm>
#include <iterator>

#include "estimator/models/families/diffusion/autoencoder.h"
#include "estimator/models/families/diffusion/cogvideox.h"
#include "estimator/models/families/diffusion/dit.h"
#include "estimator/models/families/diffusion/flux.h"
#include "estimator/models/families/diffusion/unet.h"
#include "estimator/models/families/diffusion/video_autoencoder.h"
#include "estimator/models/families/vision/builtin_families.h"
#include "estimator/models/families/vision/clip.h"
#include "estimator/models/families/vision/dinov2.h"
#include "estimator/models/families/vision/siglip.h"
#include "estimator/models/families/vision/vision_transformer.h"

namespace memfathom {
namespace {

// Published DiT weights name diffusers' older class for all transformers over images.
bool is_dit(const Node& config, const std::string& class_name) {
  const Node* norm = config.find("norm_type");
  return class_name == "Transformer2DModel" && norm != nullptr && norm->is_string() &&
         norm->as_string() == "ada_norm_zero";
}

struct DiffusersClass {
  std::string_view name;
  std::unique_ptr<Network> (*make)(Builder&, const Node&, const ModelSettings&);
  bool encodes = false;  // images to latents and back
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

}  // namespace

std::unique_ptr<Network> make_grid_model(Builder& builder, const Node& config,
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
                                           : make_builtin_family(builder, config, settings);
  }
  if (made) builder.finish();
  return made;
}

bool is_autoencoder(const Node& config) {
  const DiffusersClass* known = diffusers_class(config);
  return known != nullptr && known->encodes;
}

}  // namespace memfathom
