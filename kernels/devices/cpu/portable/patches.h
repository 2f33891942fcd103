// patches: an image as the matrix that a convolution multiplies: a column for each place of the
// filter, a row for each channel and tap of it.
#pragma once

#include <cstdint>

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

// Three spatial dimensions, missing leading ones of extent 1.
struct PatchGeometry {
  std::int64_t image[3], map[3], filter[3], stride[3], padding[3], dilation[3];

  PatchGeometry(const ConvolutionQuery& query, const Shape& image_shape, const Shape& map_shape);
  std::int64_t places() const { return map[0] * map[1] * map[2]; }
  std::int64_t taps() const { return filter[0] * filter[1] * filter[2]; }
  // Whether the image is that matrix already.
  bool is_pointwise() const;
};

// The places [first, first + count) of `channels` planes of the image; outside of it there is 0.
void to_patches(const PatchGeometry& g, const float* image, std::int64_t channels,
                std::int64_t first, std::int64_t count, float* patches);

// Adds them to the image.
void add_patches(const PatchGeometry& g, const float* patches, std::int64_t channels,
                 std::int64_t first, std::int64_t count, float* image);

}  // namespace memfathom::cpu
