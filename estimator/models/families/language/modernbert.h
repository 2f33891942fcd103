// ModernBERT: an encoder with rotary positions, gated feed-forward parts, and windows in most
// layers.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// ModernBertForMaskedLM; a sequence classifier where `architectures` names it.
std::unique_ptr<Network> make_modernbert(Builder& builder, const Node& config,
                                         const ModelSettings& settings);

}  // namespace memfathom
