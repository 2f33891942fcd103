// DiT: diffusers' class-conditional diffusion transformer (DiTTransformer2DModel).
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// Trained to predict noise. image_size is the image's, 8 times the latents'.
std::unique_ptr<Network> make_dit(Builder& builder, const Node& config,
                                  const ModelSettings& settings);

}  // namespace memfathom
