// Qwen (the first): fused qkv with a bias, an MLP of half the stated width, rotation in fp32.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/settings.h"
#include "kernels/layers/builder.h"
#include "kernels/layers/network.h"

namespace memfathom {

std::unique_ptr<Network> make_qwen(Builder& builder, const Node& config,
                                   const ModelSettings& settings);

}  // namespace memfathom
