// Falcon: one key-value head for all queries, or groups of them, beside a plain MLP.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

std::unique_ptr<Network> make_falcon(Builder& builder, const Node& config,
                                     const ModelSettings& settings);

}  // namespace memfathom
