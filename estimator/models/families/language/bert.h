// BERT, RoBERTa and DistilBERT: encoders with a head for masked words or for classes of sequences.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// The head is what "architectures" names: ...ForSequenceClassification, or else the masked language
// model.
std::unique_ptr<Network> make_bert(Builder& builder, const Node& config,
                                   const ModelSettings& settings);

}  // namespace memfathom
