// ConvolutionRoles: maps the six kinds of convolution call to three. A transposed convolution is an
// ordinary one with input and output swapped, so its forward pass is a data gradient and its data
// gradient a forward pass.
#pragma once

#include "kernels/framework/device/calls.h"

namespace memfathom {

// `image` [N, channels, space...] is the side the filter slides over, `map` [N, filters, space...]
// the side with one element per filter position; `weight` [filters, channels / groups, space...].
struct ConvolutionRoles {
  ConvolutionKind writes = ConvolutionKind::kForward;  // map, image or weight
  Operand image, map, weight;
};

inline ConvolutionRoles roles_of(const ConvolutionCall& call) {
  const ConvolutionQuery& query = call.query;
  const bool transposed = query.transposed;
  switch (query.kind) {
    case ConvolutionKind::kForward:
      if (transposed) return {ConvolutionKind::kDataGradient, call.y, call.x, call.w};
      return {ConvolutionKind::kForward, call.x, call.y, call.w};
    case ConvolutionKind::kDataGradient:
      if (transposed) return {ConvolutionKind::kForward, call.dy, call.dx, call.w};
      return {ConvolutionKind::kDataGradient, call.dx, call.dy, call.w};
    case ConvolutionKind::kWeightGradient: break;
  }
  if (transposed) return {ConvolutionKind::kWeightGradient, call.dy, call.x, call.dw};
  return {ConvolutionKind::kWeightGradient, call.x, call.dy, call.dw};
}

}  // namespace memfathom
