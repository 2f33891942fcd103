// Pool: one output element of a pooling window, and one input element of its gradient (gathered: no
// atomics).
#pragma once

#include "kernels/devices/element/math.h"
#include "kernels/devices/element/strided_span.h"

namespace memfathom::element {

// Spatial extents of one plane, always three; missing leading ones are 1 (kernel 1, stride 1,
// padding 0).
struct PoolGeometry {
  int64_t in[3], out[3], kernel[3], stride[3], padding[3];
  bool count_include_pad;
  bool adaptive;
};

// The input positions [begin, end) that output `o` of dimension d covers.
struct Window {
  int64_t begin, end;
};

MEMFATHOM_HD inline int64_t clamp_index(int64_t i, int64_t low, int64_t high) {
  return i < low ? low : i > high ? high : i;
}

MEMFATHOM_HD inline Window window_of(const PoolGeometry& g, int d, int64_t o) {
  if (g.adaptive) return {o * g.in[d] / g.out[d], ((o + 1) * g.in[d] + g.out[d] - 1) / g.out[d]};
  const int64_t begin = o * g.stride[d] - g.padding[d];
  return {clamp_index(begin, 0, g.in[d]), clamp_index(begin + g.kernel[d], 0, g.in[d])};
}

// The outputs [begin, end) whose windows may cover input `i` of dimension d.
MEMFATHOM_HD inline Window outputs_covering(const PoolGeometry& g, int d, int64_t i) {
  if (g.adaptive) return {i * g.out[d] / g.in[d], ((i + 1) * g.out[d] + g.in[d] - 1) / g.in[d]};
  const int64_t reach = i + g.padding[d];
  const int64_t begin = reach < g.kernel[d] ? 0 : (reach - g.kernel[d]) / g.stride[d] + 1;
  const int64_t end = reach / g.stride[d] + 1;
  return {clamp_index(begin, 0, g.out[d]), clamp_index(end, 0, g.out[d])};
}

// The divisor of an average: the window's size, including the padding if count_include_pad (but
// nothing beyond it).
MEMFATHOM_HD inline int64_t divisor_of(const PoolGeometry& g, const int64_t o[3]) {
  int64_t count = 1;
  for (int d = 0; d < 3; ++d) {
    const Window w = window_of(g, d, o[d]);
    if (g.adaptive || !g.count_include_pad) {
      count *= w.end - w.begin;
    } else {
      const int64_t begin = o[d] * g.stride[d] - g.padding[d];
      const int64_t end = begin + g.kernel[d];
      const int64_t limit = g.in[d] + g.padding[d];
      count *= (end < limit ? end : limit) - begin;
    }
  }
  return count;
}

MEMFATHOM_HD inline void plane_position(const int64_t extent[3], int64_t i, int64_t position[3]) {
  position[2] = i % extent[2];
  position[1] = i / extent[2] % extent[1];
  position[0] = i / extent[2] / extent[1];
}

template <typename T>
struct PoolMaximum {
  T value;
  int64_t index;  // into the flattened plane
};

// `plane` is one [D, H, W] of the input; `o` an output element of the flattened output plane.
template <typename T, typename L>
MEMFATHOM_HD PoolMaximum<T> max_pool(const PoolGeometry& g, const L& plane, int64_t o) {
  int64_t at[3];
  plane_position(g.out, o, at);
  const Window wd = window_of(g, 0, at[0]), wh = window_of(g, 1, at[1]),
               ww = window_of(g, 2, at[2]);
  PoolMaximum<T> best{T(0), -1};
  for (int64_t z = wd.begin; z < wd.end; ++z) {
    for (int64_t y = wh.begin; y < wh.end; ++y) {
      for (int64_t x = ww.begin; x < ww.end; ++x) {
        const int64_t index = (z * g.in[1] + y) * g.in[2] + x;
        const T value = plane.template get<T>(index);
        if (best.index < 0 || value > best.value || math::is_nan(value)) best = {value, index};
      }
    }
  }
  return best;
}

template <typename T, typename L>
MEMFATHOM_HD T average_pool(const PoolGeometry& g, const L& plane, int64_t o) {
  int64_t at[3];
  plane_position(g.out, o, at);
  const Window wd = window_of(g, 0, at[0]), wh = window_of(g, 1, at[1]),
               ww = window_of(g, 2, at[2]);
  T sum = T(0);
  for (int64_t z = wd.begin; z < wd.end; ++z) {
    for (int64_t y = wh.begin; y < wh.end; ++y) {
      for (int64_t x = ww.begin; x < ww.end; ++x)
        sum += plane.template get<T>((z * g.in[1] + y) * g.in[2] + x);
    }
  }
  return sum / T(divisor_of(g, at));
}

// The gradient of input element `i`: from every output that covers it, for max pooling only where
// it was the maximum. `indices` has null data for averages.
template <typename T, typename L, typename Indices>
MEMFATHOM_HD T pool_backward(const PoolGeometry& g, const L& dy, const Indices& indices,
                             int64_t i) {
  int64_t at[3];
  plane_position(g.in, i, at);
  const Window od = outputs_covering(g, 0, at[0]), oh = outputs_covering(g, 1, at[1]),
               ow = outputs_covering(g, 2, at[2]);
  T sum = T(0);
  for (int64_t z = od.begin; z < od.end; ++z) {
    for (int64_t y = oh.begin; y < oh.end; ++y) {
      for (int64_t x = ow.begin; x < ow.end; ++x) {
        const int64_t o = (z * g.out[1] + y) * g.out[2] + x;
        if (indices) {
          if (indices.template get<int64_t>(o) == i) sum += dy.template get<T>(o);
        } else {
          const int64_t position[3] = {z, y, x};
          sum += dy.template get<T>(o) / T(divisor_of(g, position));
        }
      }
    }
  }
  return sum;
}

}  // namespace memfathom::element
