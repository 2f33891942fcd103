// SigLIP: transformers' text and vision towers, trained against each other pair by pair.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// model_type siglip (both towers with the sigmoid loss, or the image classifier where
// `architectures` names it), siglip_text_model or siglip_vision_model. SigLIP 2 of a fixed image
// size is the same network under the same names.
std::unique_ptr<Network> make_siglip(Builder& builder, const Node& config,
                                     const ModelSettings& settings);

}  // namespace memfathom
