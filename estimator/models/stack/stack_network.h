// StackNetwork: a network written as a list of layers (docs/contract.md §3.1).
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// From `model: {input, layers, loss}`.
std::unique_ptr<Network> make_stack_network(Builder& builder, const Node& model,
                                            const ModelSettings& settings);

}  // namespace memfathom
