// Qwen (the first): fused qkv with a bias, an MLP of half the stated width, rotation in fp32.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

std::unique_ptr<Network> make_qwen(Builder& builder, const Node& config,
                                   const ModelSettings& settings);

}  // namespace memfathom
