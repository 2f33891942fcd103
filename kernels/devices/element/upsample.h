// Upsample: the weight with which an output position reads an input position along one dimension
// (corners not aligned), and the sums over a plane, forward and (gathered) backward.
#pragma once

#include "kernels/devices/element/pool.h"
#include "kernels/devices/element/strided_span.h"

namespace memfathom::element {

struct UpsampleGeometry {
  int64_t in[3], out[3];  // [D, H, W] of the input and output planes, missing leading ones 1
  bool linear;            // else nearest
};

struct Tap {
  int64_t low, high;
  float high_weight;  // the low one has 1 - high_weight
};

// In fp32, because PyTorch computes the source index in fp32, and a different rounding would pick
// another neighbour.
MEMFATHOM_HD inline Tap tap_of(const UpsampleGeometry& g, int d, int64_t o) {
  const float scale = float(g.in[d]) / float(g.out[d]);
  const int64_t last = g.in[d] - 1;
  if (!g.linear) {
    const int64_t source = clamp_index(int64_t(::floorf(float(o) * scale)), 0, last);
    return {source, source, 0.0f};
  }
  float source = scale * (float(o) + 0.5f) - 0.5f;
  if (source < 0.0f) source = 0.0f;
  const int64_t low = clamp_index(int64_t(source), 0, last);
  return {low, low < last ? low + 1 : low, source - float(low)};
}

MEMFATHOM_HD inline float tap_weight(const UpsampleGeometry& g, int d, int64_t o, int64_t i) {
  const Tap tap = tap_of(g, d, o);
  return (tap.low == i ? 1.0f - tap.high_weight : 0.0f) + (tap.high == i ? tap.high_weight : 0.0f);
}

// A superset of the outputs that read input `i`; tap_weight is 0 for the others.
MEMFATHOM_HD inline Window outputs_reading(const UpsampleGeometry& g, int d, int64_t i) {
  const int64_t begin = (i - 1) * g.out[d] / g.in[d] - 2;
  const int64_t end = (i + 2) * g.out[d] / g.in[d] + 2;
  return {i == 0 ? 0 : clamp_index(begin, 0, g.out[d]),
          i == g.in[d] - 1 ? g.out[d] : clamp_index(end, 0, g.out[d])};
}

template <typename T, typename L>
MEMFATHOM_HD T upsample(const UpsampleGeometry& g, const L& plane, int64_t o) {
  int64_t at[3];
  plane_position(g.out, o, at);
  const Tap tz = tap_of(g, 0, at[0]), ty = tap_of(g, 1, at[1]), tx = tap_of(g, 2, at[2]);
  T sum = T(0);
  for (int corner = 0; corner < 8; ++corner) {
    const bool hz = corner & 4, hy = corner & 2, hx = corner & 1;
    const float weight = (hz ? tz.high_weight : 1.0f - tz.high_weight) *
                         (hy ? ty.high_weight : 1.0f - ty.high_weight) *
                         (hx ? tx.high_weight : 1.0f - tx.high_weight);
    if (weight == 0.0f) continue;
    const int64_t z = hz ? tz.high : tz.low, y = hy ? ty.high : ty.low, x = hx ? tx.high : tx.low;
    sum += T(weight) * plane.template get<T>((z * g.in[1] + y) * g.in[2] + x);
  }
  return sum;
}

template <typename T, typename L>
MEMFATHOM_HD T upsample_backward(const UpsampleGeometry& g, const L& dy, int64_t i) {
  int64_t at[3];
  plane_position(g.in, i, at);
  const Window wz = outputs_reading(g, 0, at[0]), wy = outputs_reading(g, 1, at[1]),
               wx = outputs_reading(g, 2, at[2]);
  T sum = T(0);
  for (int64_t z = wz.begin; z < wz.end; ++z) {
    const float weight_z = tap_weight(g, 0, z, at[0]);
    if (weight_z == 0.0f) continue;
    for (int64_t y = wy.begin; y < wy.end; ++y) {
      const float weight_zy = weight_z * tap_weight(g, 1, y, at[1]);
      if (weight_zy == 0.0f) continue;
      for (int64_t x = wx.begin; x < wx.end; ++x) {
        const float weight = weight_zy * tap_weight(g, 2, x, at[2]);
        if (weight != 0.0f)
          sum += T(weight) * dy.template get<T>((z * g.out[1] + y) * g.out[2] + x);
      }
    }
  }
  return sum;
}

}  // namespace memfathom::element
