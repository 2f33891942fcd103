// Autoencoder: diffusers' AutoencoderKL, which turns images into latents and back.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// The whole of it is trained to give its input back; `model.part` runs only the encoder (as the
// training of a diffusion model does) or the decoder. image_size is the image's.
std::unique_ptr<Network> make_autoencoder(Builder& builder, const Node& config,
                                          const ModelSettings& settings);

}  // namespace memfathom
