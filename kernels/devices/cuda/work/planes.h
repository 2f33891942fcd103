// Plane work: pooling and upsampling, one element of a [D, H, W] plane at a time, and embedding.
#pragma once

#include "kernels/devices/cuda/work/team.h"
#include "kernels/devices/element/geometry.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cuda {

template <typename T>
struct PoolWork {
  Pool op;
  bool backward;
  element::PoolGeometry geometry;
  element::Rows x, y, indices;  // backward: dx and dy in place of x and y; a row per plane
  int64_t plane;                // elements of the plane that is written

  MEMFATHOM_HD void operator()(int64_t i) const {
    const int64_t p = i / plane;
    const int64_t e = i % plane;
    const RowRef input = row_of(x, p), output = row_of(y, p), places = row_of(indices, p);
    if (backward)
      return input.template set<T>(e, element::pool_backward<T>(geometry, output, places, e));
    if (op != Pool::kMax)
      return output.template set<T>(e, element::average_pool<T>(geometry, input, e));
    const element::PoolMaximum<T> best = element::max_pool<T>(geometry, input, e);
    output.template set<T>(e, best.value);
    if (places) places.template set<int64_t>(e, best.index);
  }
};

template <typename Executor>
void submit(Executor& executor, const PoolCall& call) {
  const Operand& written = call.backward ? call.dx : call.y;
  const auto planes = [](const Operand& operand) {
    return operand ? element::rows_from(operand, 2) : element::Rows{};
  };
  const auto run = [&]<typename T>(T) {
    const PoolWork<T> work{call.op,
                           call.backward,
                           element::geometry_of(call),
                           planes(call.backward ? call.dx : call.x),
                           planes(call.backward ? call.dy : call.y),
                           planes(call.indices),
                           planes(written).length()};
    executor.each(written.shape.elements(), work);
  };
  in_double(written.dtype) ? run(0.0) : run(0.0F);
}

template <typename T>
struct UpsampleWork {
  bool backward;
  element::UpsampleGeometry geometry;
  element::Rows in, out;
  int64_t plane;

  MEMFATHOM_HD void operator()(int64_t i) const {
    const int64_t p = i / plane;
    const int64_t e = i % plane;
    const RowRef source = row_of(in, p);
    row_of(out, p).template set<T>(e, backward ? element::upsample_backward<T>(geometry, source, e)
                                               : element::upsample<T>(geometry, source, e));
  }
};

template <typename Executor>
void submit(Executor& executor, const UpsampleCall& call) {
  const auto run = [&]<typename T>(T) {
    const element::Rows out = element::rows_from(call.out, 2);
    executor.each(call.out.shape.elements(),
                  UpsampleWork<T>{call.backward, element::geometry_of(call),
                                  element::rows_from(call.in, 2), out, out.length()});
  };
  in_double(call.out.dtype) ? run(0.0) : run(0.0F);
}

struct EmbeddingShape {
  int64_t positions, width, vocabulary, padding_index;
};

// An index outside the table gives NaN, because a device cannot throw.
template <typename T>
struct EmbeddingWork {
  EmbeddingShape shape;
  element::Rows table, out;
  element::StridedSpan index;

  MEMFATHOM_HD void operator()(int64_t i) const {
    const int64_t position = i / shape.width;
    const int64_t feature = i % shape.width;
    const int64_t row = index.template get<int64_t>(position);
    const bool known = row >= 0 && row < shape.vocabulary;
    row_of(out, position)
        .template set<T>(feature, known ? row_of(table, row).template get<T>(feature) : T(NAN));
  }
};

// One thread sums one feature of all positions in order: no atomics, and a deterministic sum.
template <typename T>
struct EmbeddingBackwardWork {
  EmbeddingShape shape;
  element::Rows table, out;
  element::StridedSpan index;

  MEMFATHOM_HD void operator()(int64_t feature) const {
    for (int64_t position = 0; position < shape.positions; ++position) {
      const int64_t row = index.template get<int64_t>(position);
      if (row < 0 || row >= shape.vocabulary || row == shape.padding_index) continue;
      const RowRef sum = row_of(table, row);
      sum.set<T>(feature, sum.get<T>(feature) + row_of(out, position).template get<T>(feature));
    }
  }
};

template <typename Executor>
void submit(Executor& executor, const EmbeddingCall& call) {
  const EmbeddingShape shape{call.index.shape.elements(), call.table.shape[1], call.table.shape[0],
                             call.padding_index};
  const element::Rows table = element::rows_from(call.table, 1);
  const element::Rows out = element::rows_from(call.out, call.out.shape.rank() - 1);
  const element::StridedSpan index = element::whole(call.index);
  const auto run = [&]<typename T>(T) {
    if (call.backward) {
      executor.each(shape.width, EmbeddingBackwardWork<T>{shape, table, out, index});
    } else {
      executor.each(call.out.shape.elements(), EmbeddingWork<T>{shape, table, out, index});
    }
  };
  in_double(call.table.dtype) ? run(0.0) : run(0.0F);
}

}  // namespace memfathom::cuda
