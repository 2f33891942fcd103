// Squeeze and excitation: channels weighted by what their averages say.
#pragma once

#include "estimator/models/blocks/image_parts.h"

namespace memfathom {

struct SqueezeExcitationConfig {
  std::int64_t channels = 0, squeezed = 0;
  Activation activation = Activation::kRelu;
  bool in_place = false;
  Activation gate = Activation::kSigmoid;
};

Layer squeeze_excitation_layer(const ImageContext& context, std::string_view name,
                               const SqueezeExcitationConfig& cfg);

}  // namespace memfathom
