// Geometry: the plain structures of the row functions, created from calls (host side).
#pragma once

#include <cmath>

#include "kernels/devices/element/attention.h"
#include "kernels/devices/element/optimizer.h"
#include "kernels/devices/element/pool.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/element/upsample.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::element {

// The spatial extents of [N, C, space...] as three, with leading ones added.
inline void space_of(const Shape& shape, std::int64_t (&space)[3]) {
  const int missing = 5 - shape.rank();
  for (int d = 0; d < 3; ++d) space[d] = d < missing ? 1 : shape[d - missing + 2];
}

inline void three_of(const Shape& values, std::int64_t fill, std::int64_t (&three)[3]) {
  const int missing = 3 - values.rank();
  for (int d = 0; d < 3; ++d) three[d] = d < missing ? fill : values[d - missing];
}

inline PoolGeometry geometry_of(const PoolCall& call) {
  PoolGeometry g{};
  space_of(call.backward ? call.dx.shape : call.x.shape, g.in);
  space_of(call.backward ? call.dy.shape : call.y.shape, g.out);
  three_of(call.kernel, 1, g.kernel);
  three_of(call.stride, 1, g.stride);
  three_of(call.padding, 0, g.padding);
  g.count_include_pad = call.count_include_pad;
  g.adaptive = call.op == Pool::kAdaptiveAverage;
  return g;
}

// `in` is always the forward pass's input, also in backward calls.
inline UpsampleGeometry geometry_of(const UpsampleCall& call) {
  UpsampleGeometry g{};
  space_of(call.backward ? call.out.shape : call.in.shape, g.in);
  space_of(call.backward ? call.in.shape : call.out.shape, g.out);
  g.linear = call.op == Upsample::kBilinear;
  return g;
}

inline AttentionTensor attention_tensor(const Operand& t) {
  AttentionTensor result{t.data, t.dtype, {0, 0, 0, 0}};
  for (int d = 0; d < t.shape.rank(); ++d) result.stride[d] = t.shape[d] == 1 ? 0 : t.strides[d];
  return result;
}

// A mask of fewer dimensions broadcasts from the right.
inline AttentionTensor attention_mask(const Operand& t) {
  AttentionTensor result{t.data, t.dtype, {0, 0, 0, 0}};
  const int missing = 4 - t.shape.rank();
  for (int d = 0; d < t.shape.rank(); ++d) {
    result.stride[d + missing] = t.shape[d] == 1 ? 0 : t.strides[d];
  }
  return result;
}

inline AttentionView view_of(const AttentionCall& call) {
  AttentionView view;
  view.q = attention_tensor(call.q);
  view.k = attention_tensor(call.k);
  view.v = attention_tensor(call.v);
  view.out = attention_tensor(call.out);
  view.logsumexp = attention_tensor(call.logsumexp);
  view.dout = attention_tensor(call.dout);
  view.dq = attention_tensor(call.dq);
  view.dk = attention_tensor(call.dk);
  view.dv = attention_tensor(call.dv);
  if (call.mask) view.mask = attention_mask(call.mask);
  view.batch = call.q.shape[0];
  view.heads = call.q.shape[1];
  view.queries = call.q.shape[2];
  view.width = call.q.shape[3];
  view.kv_heads = call.k.shape[1];
  view.keys = call.k.shape[2];
  view.causal = call.causal;
  view.scale = call.scale;
  view.dropout = call.dropout;
  view.seed = call.seed;
  view.offset = call.offset;
  return view;
}

template <typename T>
StepOptions<T> step_options(const OptimizerCall& call) {
  const double step = static_cast<double>(call.step);
  return {T(call.learning_rate),
          T(call.beta1),
          T(call.beta2),
          T(call.eps),
          T(call.weight_decay),
          T(call.momentum),
          T(1 - std::pow(call.beta1, step)),
          T(1 - std::pow(call.beta2, step)),
          call.step == 1};
}

}  // namespace memfathom::element
