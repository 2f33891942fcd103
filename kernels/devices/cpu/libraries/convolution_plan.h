// ConvolutionPlan: one oneDNN primitive for a query, and the layout of its workspace.
#pragma once

#include <dnnl.hpp>

#include "core/bytes.h"
#include "kernels/devices/cpu/convolution_operands.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

struct ConvolutionPlan {
  ConvolutionKind writes =
      ConvolutionKind::kForward;  // map, image or weight: see convolution_roles.h
  dnnl::primitive primitive;
  // The expected operands: fp32, dense, channels first or last. weight_inside: in the kernel's
  // order.
  dnnl::memory::desc image, map, weight, weight_inside, scratchpad;
  Shape image_shape, map_shape, weight_shape;
  Piece scratchpad_piece, weight_piece;     // any call may need them
  Piece image_copy, map_copy, weight_copy;  // fp32 copies of 16-bit operands
  std::int64_t workspace = 0;
};

ConvolutionPlan make_plan(const ConvolutionQuery& query, const dnnl::engine& engine);

}  // namespace memfathom::cpu
