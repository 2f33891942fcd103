// BLOOM: a decoder with position biases on the scores instead of position embeddings.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

std::unique_ptr<Network> make_bloom(Builder& builder, const Node& config,
                                    const ModelSettings& settings);

}  // namespace memfathom
