// T5: an encoder and a decoder with relative position biases; or the encoder alone, as text
// encoders use it.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// "architectures": ["T5EncoderModel"] builds the encoder alone.
std::unique_ptr<Network> make_t5(Builder& builder, const Node& config,
                                 const ModelSettings& settings);

}  // namespace memfathom
