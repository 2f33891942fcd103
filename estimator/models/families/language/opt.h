// OPT: learned positions, layer norms, plain MLP; its widest models project a narrower embedding.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

std::unique_ptr<Network> make_opt(Builder& builder, const Node& config,
                                  const ModelSettings& settings);

}  // namespace memfathom
