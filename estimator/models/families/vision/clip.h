// CLIP: transformers' text and vision towers, and the two trained against each other.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// model_type clip (both towers, contrastive loss), clip_text_model or clip_vision_model. A tower on
// its own has a projection where `architectures` says WithProjection. Texts have
// training.sequence_length tokens, by default as many as there are positions.
std::unique_ptr<Network> make_clip(Builder& builder, const Node& config,
                                   const ModelSettings& settings);

}  // namespace memfathom
