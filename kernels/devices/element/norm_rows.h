// NormRows: the rows of each norm (host side), so that one row function and one column function
// serve all norms.
//
//   layer, RMS: a row is the last dimension;          a column is one feature over all rows
//   group:      a row is a group of channels;         a column is one channel over batch and space
//   batch:      a row is one channel over batch and space, and so is a column
#pragma once

#include "kernels/devices/element/split.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::element {

// Statistics (mean, rstd) are rows with stride 0 inside: get(0) of a row is its value.
struct NormRows {
  Rows x, y, dy, dx, weight, bias, mean, rstd, running_mean, running_var;
};
// One column per weight.
struct NormColumns {
  Rows x, dy, mean, rstd, dweight, dbias;
};

// A norm's operands with dimensions ordered so that the first outer() of them index rows.
struct NormForm {
  Norm op;
  std::int64_t groups;
  Shape shape;  // of x

  // x, y, dy, dx. Group: [N, C, space...] -> [N, G, C/G, space...]; batch: -> [C, N, space...].
  Operand tensor(const Operand& t) const {
    if (!t || op == Norm::kLayer || op == Norm::kRms) return t;
    Operand result{t.data, t.dtype, {}, {}};
    const auto add = [&result](std::int64_t extent, std::int64_t stride) {
      result.shape.push_back(extent);
      result.strides.push_back(stride);
    };
    if (op == Norm::kBatch) {
      add(t.shape[1], t.strides[1]);
      add(t.shape[0], t.strides[0]);
    } else {
      const std::int64_t channels = t.shape[1] / groups;
      add(t.shape[0], t.strides[0]);
      add(groups, t.strides[1] * channels);
      add(channels, t.strides[1]);
    }
    for (int d = 2; d < t.shape.rank(); ++d) add(t.shape[d], t.strides[d]);
    return result;
  }

  // The number of leading dimensions of tensor() that index rows.
  int outer() const {
    if (op == Norm::kBatch) return 1;
    return op == Norm::kGroup ? 2 : shape.rank() - 1;
  }
};

// A one-dimensional operand expanded to `like` with the given strides (0 where it repeats).
inline Operand spread(const Operand& t, const Operand& like, const Shape& strides) {
  return {t.data, t.dtype, like.shape, strides};
}

inline Shape zero_strides(int rank) {
  Shape strides;
  for (int d = 0; d < rank; ++d) strides.push_back(0);
  return strides;
}

// Weight, bias and the running statistics: one per feature or channel.
inline Operand spread_feature(const NormForm& form, const Operand& t, const Operand& like) {
  if (!t) return t;
  Shape strides = zero_strides(like.shape.rank());
  const std::int64_t step = t.strides[0];
  if (form.op == Norm::kBatch) {
    strides[0] = step;
  } else if (form.op == Norm::kGroup) {
    strides[1] = step * like.shape[2];
    strides[2] = step;
  } else {
    strides[-1] = step;
  }
  return spread(t, like, strides);
}

// mean and rstd: contiguous, one per row.
inline Operand spread_statistic(const NormForm& form, const Operand& t, const Operand& like) {
  if (!t) return t;
  Shape strides = zero_strides(like.shape.rank());
  std::int64_t step = 1;
  for (int d = form.outer() - 1; d >= 0; --d) {
    strides[d] = step;
    step *= like.shape[d];
  }
  return spread(t, like, strides);
}

inline NormRows norm_rows(const NormCall& call) {
  const NormForm form{call.op, call.groups, call.x.shape};
  const int outer = form.outer();
  const Operand x = form.tensor(call.x);
  const auto tensor = [&](const Operand& t) {
    return t ? rows_from(form.tensor(t), outer) : Rows{};
  };
  const auto feature = [&](const Operand& t) {
    return t ? rows_from(spread_feature(form, t, x), outer) : Rows{};
  };
  const auto figure = [&](const Operand& t) {
    return t ? rows_from(spread_statistic(form, t, x), outer) : Rows{};
  };
  return {tensor(call.x),           tensor(call.y),       tensor(call.dy),
          tensor(call.dx),          feature(call.weight), feature(call.bias),
          figure(call.mean),        figure(call.rstd),    feature(call.running_mean),
          feature(call.running_var)};
}

inline NormColumns norm_columns(const NormCall& call) {
  const NormForm form{call.op, call.groups, call.x.shape};
  const Operand x = form.tensor(call.x);
  const int rank = x.shape.rank();
  // Feature dimensions to the front, everything else after them.
  Shape order;
  int features = 1;
  if (call.op == Norm::kBatch) {
    order.push_back(0);
  } else if (call.op == Norm::kGroup) {
    order = {1, 2};
    features = 2;
  } else {
    order.push_back(rank - 1);
  }
  const Shape front = order;
  for (int d = 0; d < rank; ++d) {
    if (std::find(front.begin(), front.end(), d) == front.end()) order.push_back(d);
  }
  const auto columns = [&](const Operand& t) {
    return t ? rows_from(permuted(t, order), features) : Rows{};
  };
  return {columns(x),
          columns(form.tensor(call.dy)),
          columns(spread_statistic(form, call.mean, x)),
          columns(spread_statistic(form, call.rstd, x)),
          columns(spread_feature(form, call.dweight, x)),
          columns(spread_feature(form, call.dbias, x))};
}

}  // namespace memfathom::element
