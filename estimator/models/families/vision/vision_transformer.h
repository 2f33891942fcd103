// Vision transformer: transformers' ViT by its config.json.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// ViTForImageClassification; ViTModel with its pooler where `architectures` names it.
std::unique_ptr<Network> make_vision_transformer(Builder& builder, const Node& config,
                                                 const ModelSettings& settings);

}  // namespace memfathom
