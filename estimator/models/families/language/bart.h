// BART: transformers' encoder-decoders of text, and Whisper, which is one of them with ears.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// model_type bart, mbart or whisper, for conditional generation. Whisper's recordings have the
// length that its config fixes; training.sequence_length counts the tokens it writes.
std::unique_ptr<Network> make_bart(Builder& builder, const Node& config,
                                   const ModelSettings& settings);

}  // namespace memfathom
