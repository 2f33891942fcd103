// DeBERTa v2 and v3: an encoder that attends by content and by distance.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// DebertaV2ForMaskedLM; a sequence classifier where `architectures` names it. The library has no
// kernel for its attention, so `attention` changes nothing.
std::unique_ptr<Network> make_deberta(Builder& builder, const Node& config,
                                      const ModelSettings& settings);

}  // namespace memfathom
