// ConvolutionPlan: one oneDNN primitive for a query, and where in the workspace its parts lie.
#pragma once

#include <dnnl.hpp>

#include "core/bytes.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

// A piece of the workspace; none of size 0 is used.
struct Piece {
  std::int64_t offset = 0;
  std::int64_t size = 0;
};

struct ConvolutionPlan {
  ConvolutionKind writes =
      ConvolutionKind::kForward;  // map, image or weight: see convolution_roles.h
  dnnl::primitive primitive;
  // As the call's operands are expected: fp32, dense, channels first or last. weight_inside: as the
  // kernel wants them.
  dnnl::memory::desc image, map, weight, weight_inside, scratchpad;
  Shape image_shape, map_shape, weight_shape;
  Piece scratchpad_piece, weight_piece;     // always possible
  Piece image_copy, map_copy, weight_copy;  // fp32 copies of 16-bit operands
  std::int64_t workspace = 0;
};

// The map's (or, transposed, the image's) shape is worked out from the query as PyTorch does.
ConvolutionPlan make_plan(const ConvolutionQuery& query, const dnnl::engine& engine);

// Dense strides, channels first ([N, C, space...]) or last.
Shape layout_strides(const Shape& shape, bool channels_last);

}  // namespace memfathom::cpu
