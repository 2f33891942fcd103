// Phi (1, 1.5, 2): attention and MLP side by side on one layer norm, part of each head rotated.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

std::unique_ptr<Network> make_phi(Builder& builder, const Node& config,
                                  const ModelSettings& settings);

}  // namespace memfathom
