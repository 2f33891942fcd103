// split: tensors as spans and rows (host side): which dimensions a row covers, and which determine
// where it starts.
#pragma once

#include "kernels/devices/element/strided_span.h"
#include "kernels/framework/device/operand.h"

namespace memfathom::element {

// The dimensions `first` to `last - 1` of an operand, in order; neighbours are merged if the
// strides allow.
inline StridedSpan span_over(const Operand& operand, int first, int last) {
  StridedSpan lane;
  lane.data = operand.data;
  lane.dtype = operand.dtype;
  lane.rank = 0;
  for (int d = first; d < last; ++d) {
    const std::int64_t extent = operand.shape[d], stride = operand.strides[d];
    if (extent == 1) continue;
    const int top = lane.rank - 1;
    if (lane.rank > 0 && lane.stride[top] == stride * extent) {
      lane.extent[top] *= extent;
      lane.stride[top] = stride;
    } else {
      lane.extent[lane.rank] = extent;
      lane.stride[lane.rank++] = stride;
    }
  }
  if (lane.rank == 0) {
    lane.rank = 1;
    lane.extent[0] = 1;
    lane.stride[0] = 0;
  }
  return lane;
}

// The operand broadcast to an output of this shape.
inline Operand broadcast_to(const Operand& operand, const Shape& shape) {
  Operand result{operand.data, operand.dtype, shape, shape};
  const int missing = shape.rank() - operand.shape.rank();
  for (int d = 0; d < shape.rank(); ++d) {
    const bool repeats = d < missing || (operand.shape[d - missing] == 1 && shape[d] != 1);
    result.strides[d] = repeats ? 0 : operand.strides[d - missing];
  }
  return result;
}

inline StridedSpan whole(const Operand& operand) {
  return span_over(operand, 0, operand.shape.rank());
}

// Rows over the dimensions from `inner` on; the dimensions before it index the rows.
inline Rows rows_from(const Operand& operand, int inner) {
  return {span_over(operand, 0, inner), span_over(operand, inner, operand.shape.rank())};
}

// The same elements with their dimensions in another order.
inline Operand permuted(const Operand& operand, const Shape& order) {
  Operand result{operand.data, operand.dtype, {}, {}};
  for (const std::int64_t d : order) {
    result.shape.push_back(operand.shape[static_cast<int>(d)]);
    result.strides.push_back(operand.strides[static_cast<int>(d)]);
  }
  return result;
}

// Rows along dimension `dim` alone.
inline Rows rows_along(const Operand& operand, int dim) {
  const int rank = operand.shape.rank();
  if (dim < 0) dim += rank;
  Shape order;
  for (int d = 0; d < rank; ++d) {
    if (d != dim) order.push_back(d);
  }
  order.push_back(dim);
  return rows_from(permuted(operand, order), rank - 1);
}

// The row-major strides of a shape.
inline Shape contiguous_strides(const Shape& shape) {
  Shape strides = shape;
  std::int64_t step = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[d] = step;
    step *= shape[d] > 0 ? shape[d] : 1;
  }
  return strides;
}

}  // namespace memfathom::element
