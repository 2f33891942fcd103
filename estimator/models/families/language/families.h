// Families: Hugging Face's language and text models by their model_type.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// The model that `config` (the keys of config.json) describes; nullptr when its model_type is none
// of ours. A bad value is Error(kInput) that names its file, line and key.
std::unique_ptr<Network> make_language_model(Builder& builder, const Node& config,
                                             const ModelSettings& settings);

// The model_types known, in alphabetical order.
std::vector<std::string_view> language_model_types();

}  // namespace memfathom
