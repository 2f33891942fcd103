// Factory: a resolved model into a network.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "estimator/models/model_spec.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// The network of a model that is neither a list of modules nor a trace. Opens no file. Assumptions
// it had to make are appended to `assumptions`.
std::unique_ptr<Network> make_network(Builder& builder, const ModelSpec& model,
                                      const ModelSettings& settings,
                                      std::vector<std::string>& assumptions);

}  // namespace memfathom
