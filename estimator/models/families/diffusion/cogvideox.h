// CogVideoX: diffusers' CogVideoXTransformer3DModel, with position tables (2b) or rotary embedding
// (5b).
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// image_size and num_frames are the video's: latents are 1/8 in height and width, and 1 + (frames -
// 1) / 4 in time.
std::unique_ptr<Network> make_cogvideox(Builder& builder, const Node& config,
                                        const ModelSettings& settings);

}  // namespace memfathom
