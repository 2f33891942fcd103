#include "kernels/devices/cpu/portable/patches.h"

#include "kernels/devices/element/geometry.h"

namespace memfathom::cpu {
namespace {

// Visits the elements of one tap in the order of the places; `visit(n, offset)` gets the offset in
// the plane, or -1 outside of it.
template <typename Visit>
void for_each_place(const PatchGeometry& g, std::int64_t tap, std::int64_t first,
                    std::int64_t count, Visit&& visit) {
  std::int64_t at[3];
  element::plane_position(g.filter, tap, at);
  for (int d = 0; d < 3; ++d) at[d] = at[d] * g.dilation[d] - g.padding[d];
  std::int64_t place[3];
  element::plane_position(g.map, first, place);
  const auto is_inside = [&](int d, std::int64_t p) { return p >= 0 && p < g.image[d]; };
  for (std::int64_t n = 0; n < count;) {
    const std::int64_t depth = place[0] * g.stride[0] + at[0], row = place[1] * g.stride[1] + at[1];
    const bool row_is_inside = is_inside(0, depth) && is_inside(1, row);
    const std::int64_t start = (depth * g.image[1] + row) * g.image[2];
    for (; place[2] < g.map[2] && n < count; ++place[2], ++n) {
      const std::int64_t column = place[2] * g.stride[2] + at[2];
      visit(n, row_is_inside && is_inside(2, column) ? start + column : -1);
    }
    place[2] = 0;
    if (++place[1] == g.map[1]) {
      place[1] = 0;
      ++place[0];
    }
  }
}

}  // namespace

PatchGeometry::PatchGeometry(const ConvolutionQuery& query, const Shape& image_shape,
                             const Shape& map_shape) {
  element::space_of(image_shape, image);
  element::space_of(map_shape, map);
  element::space_of(query.weight, filter);
  element::three_of(query.stride, 1, stride);
  element::three_of(query.padding, 0, padding);
  element::three_of(query.dilation, 1, dilation);
}

bool PatchGeometry::is_pointwise() const {
  if (taps() != 1) return false;
  for (int d = 0; d < 3; ++d) {
    if (stride[d] != 1 || padding[d] != 0 || image[d] != map[d]) return false;
  }
  return true;
}

void to_patches(const PatchGeometry& g, const float* image, std::int64_t channels,
                std::int64_t first, std::int64_t count, float* patches) {
  const std::int64_t plane = g.image[0] * g.image[1] * g.image[2];
  for (std::int64_t c = 0; c < channels; ++c, image += plane) {
    for (std::int64_t tap = 0; tap < g.taps(); ++tap, patches += count) {
      for_each_place(g, tap, first, count, [&](std::int64_t n, std::int64_t offset) {
        patches[n] = offset < 0 ? 0.0f : image[offset];
      });
    }
  }
}

void add_patches(const PatchGeometry& g, const float* patches, std::int64_t channels,
                 std::int64_t first, std::int64_t count, float* image) {
  const std::int64_t plane = g.image[0] * g.image[1] * g.image[2];
  for (std::int64_t c = 0; c < channels; ++c, image += plane) {
    for (std::int64_t tap = 0; tap < g.taps(); ++tap, patches += count) {
      for_each_place(g, tap, first, count, [&](std::int64_t n, std::int64_t offset) {
        if (offset >= 0) image[offset] += patches[n];
      });
    }
  }
}

}  // namespace memfathom::cpu
