// Llama and its variants: pre-norm decoders with rotary positions and a gated MLP, as transformers
// writes them.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/image_source.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// One of the families of llama_variants(), which the config's model_type names.
std::unique_ptr<Network> make_llama(Builder& builder, const Node& config,
                                    const ModelSettings& settings);
// The same with images among its tokens.
std::unique_ptr<Network> make_multimodal_llama(Builder& builder, const Node& config,
                                               const ModelSettings& settings,
                                               std::unique_ptr<ImageSource> images);

}  // namespace memfathom
