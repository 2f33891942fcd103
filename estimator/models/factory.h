// Factory: a job's `model` into a network, whatever way it is said.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// One network from `preset`, `config` or `layers`. Assumptions it had to make are appended to
// `assumptions`.
std::unique_ptr<Network> make_network(Builder& builder, const Node& model,
                                      const ModelSettings& settings,
                                      std::vector<std::string>& assumptions);

// The configuration behind `preset`, `config` or `parameters`; nothing for models that have none.
std::optional<Node> model_config(const Node& model, std::vector<std::string>& assumptions);

}  // namespace memfathom
