// GPT-2 and its kin GPTBigCode (SantaCoder, StarCoder), as transformers writes them.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

std::unique_ptr<Network> make_gpt2(Builder& builder, const Node& config,
                                   const ModelSettings& settings);

}  // namespace memfathom
