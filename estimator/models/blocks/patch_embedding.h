// Patch embedding: the convolution that turns an image into one vector per patch.
#pragma once

#include <cstdint>
#include <string_view>

#include "estimator/models/blocks/image_config.h"
#include "estimator/models/blocks/image_parts.h"

namespace memfathom {

inline Layer patch_embedding(const ImageContext& context, std::string_view name,
                             std::int64_t channels, std::int64_t hidden,
                             const ConfigExtent& patch) {
  return conv_layer(context, name,
                    {.in = channels,
                     .out = hidden,
                     .kernel = patch.height,
                     .stride = patch.height,
                     .bias = true,
                     .kernel_width = patch.width,
                     .stride_width = patch.width});
}

}  // namespace memfathom
