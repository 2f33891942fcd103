// Stored network: a model of which only the shapes of its weights are known.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "estimator/models/stored/stored_tensors.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// Every weight is there with its shape; numbered blocks ("layers.3.") run one after the other, and
// each matrix is a linear layer over the sequence with an activation behind it. What else such a
// model computes is not known; `assumptions` says so.
std::unique_ptr<Network> make_stored_network(Builder& builder, const Node& config,
                                             const std::vector<StoredTensor>& tensors,
                                             const ModelSettings& settings,
                                             std::vector<std::string>& assumptions);

}  // namespace memfathom
