// attention_query: the workspace query that describes an attention call.
#pragma once

#include "core/workspace.h"
#include "kernels/framework/device/calls.h"

namespace memfathom {

// Empty for an absent tensor and for a dense [batch, length, heads, head size] layout, which
// PyTorch's projections produce.
inline Shape non_default_strides(const Operand& operand) {
  if (!operand) return {};
  const Shape& n = operand.shape;
  const Shape usual{n[1] * n[2] * n[3], n[3], n[1] * n[3], 1};
  return operand.strides == usual ? Shape{} : operand.strides;
}

inline AttentionQuery query_of(const AttentionCall& call) {
  return {.backward = call.backward,
          .causal = call.causal,
          .dtype = call.q.dtype,
          .q = call.q.shape,
          .k = call.k.shape,
          .strides = {.q = non_default_strides(call.q),
                      .k = non_default_strides(call.k),
                      .v = non_default_strides(call.v),
                      .out = non_default_strides(call.out),
                      .dout = non_default_strides(call.dout),
                      .dq = non_default_strides(call.dq),
                      .dk = non_default_strides(call.dk),
                      .dv = non_default_strides(call.dv)}};
}

}  // namespace memfathom
