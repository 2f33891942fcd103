// GPT-NeoX and Pythia: fused qkv per head, part of it rotated, attention and MLP side by side.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

std::unique_ptr<Network> make_gpt_neox(Builder& builder, const Node& config,
                                       const ModelSettings& settings);

}  // namespace memfathom
