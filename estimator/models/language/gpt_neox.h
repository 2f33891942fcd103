// GPT-NeoX and Pythia: fused qkv per head, part of it rotated, attention and MLP side by side.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/settings.h"
#include "kernels/layers/builder.h"
#include "kernels/layers/network.h"

namespace memfathom {

std::unique_ptr<Network> make_gpt_neox(Builder& builder, const Node& config,
                                       const ModelSettings& settings);

}  // namespace memfathom
