// Own families: mlp, cnn, unet and fno by a few keys (docs/models.md), written out as a stack of
// layers.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// nullptr when model_type is none of them.
std::unique_ptr<Network> make_builtin_family(Builder& builder, const Node& config,
                                             const ModelSettings& settings);

}  // namespace memfathom
