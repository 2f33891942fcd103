// Falcon: one key-value head for all queries, or groups of them, beside a plain MLP.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/settings.h"
#include "kernels/layers/builder.h"
#include "kernels/layers/network.h"

namespace memfathom {

std::unique_ptr<Network> make_falcon(Builder& builder, const Node& config,
                                     const ModelSettings& settings);

}  // namespace memfathom
