// DINOv2: transformers' image encoder, with or without registers, by its config.json.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// model_type dinov2 or dinov2_with_registers: the image classifier where `architectures` names it,
// else the tokens. Pictures may have another size than the config says: the positions are
// interpolated.
std::unique_ptr<Network> make_dinov2(Builder& builder, const Node& config,
                                     const ModelSettings& settings);

}  // namespace memfathom
