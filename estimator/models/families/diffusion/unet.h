// U-Net: diffusers' UNet2DModel (DDPM) and UNet2DConditionModel (Stable Diffusion 1.x, 2.x, XL).
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// Trained to predict noise. image_size is that of the samples for UNet2DModel, of the image (8
// times the latents') for UNet2DConditionModel; sequence_length is the text's there.
std::unique_ptr<Network> make_unet(Builder& builder, const Node& config,
                                   const ModelSettings& settings);

}  // namespace memfathom
