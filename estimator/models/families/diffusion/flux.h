// Flux: diffusers' FluxTransformer2DModel.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// image_size is the image's, 1024 x 1024 if absent: latents are 1/8 of it, two by two a token.
// sequence_length is the text's, 512 if absent.
std::unique_ptr<Network> make_flux(Builder& builder, const Node& config,
                                   const ModelSettings& settings);

}  // namespace memfathom
