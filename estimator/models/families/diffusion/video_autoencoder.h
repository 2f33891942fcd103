// Video autoencoder: diffusers' AutoencoderKLCogVideoX, which turns videos into latents and back.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// A few frames at a time, as the library does it, without tiling or slicing. image_size and
// num_frames are the video's; `model.part` runs only the encoder or the decoder.
std::unique_ptr<Network> make_video_autoencoder(Builder& builder, const Node& config,
                                                const ModelSettings& settings);

}  // namespace memfathom
