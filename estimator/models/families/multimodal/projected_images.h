// Projected images: a CLIP or SigLIP tower and the projector behind it: LLaVA, Gemma 3, PaliGemma.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/image_source.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"

namespace memfathom {

// `config` is the whole model's, `hidden` the language model's width.
std::unique_ptr<ImageSource> make_projected_images(Builder& builder, const Node& config,
                                                   std::int64_t hidden,
                                                   const ModelSettings& settings);

// Whether the tower in `config` is one of those.
bool has_projected_images(const Node& config);

}  // namespace memfathom
