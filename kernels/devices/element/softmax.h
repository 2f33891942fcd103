// Softmax rows: softmax and log-softmax of one row, and their gradients. In and Out are spans
// (strided_span.h) or types with the same get and set; T is the arithmetic type. `out` may alias an
// input.
#pragma once

#include "kernels/devices/element/math.h"
#include "kernels/devices/element/strided_span.h"

namespace memfathom::element {

template <typename T>
struct MaxAndSum {
  T max;
  T sum;  // of exp(x - max)
};

template <typename T, typename In>
MEMFATHOM_HD MaxAndSum<T> max_and_sum(int64_t n, const In& in) {
  T top = in.template get<T>(0);
  for (int64_t i = 1; i < n; ++i) top = math::max(top, in.template get<T>(i));
  T sum = T(0);
  for (int64_t i = 0; i < n; ++i) sum += math::exp(in.template get<T>(i) - top);
  return {top, sum};
}

template <typename T, typename In, typename Out>
MEMFATHOM_HD void softmax_row(int64_t n, const In& in, const Out& out) {
  const MaxAndSum<T> row = max_and_sum<T>(n, in);
  for (int64_t i = 0; i < n; ++i) {
    out.template set<T>(i, math::exp(in.template get<T>(i) - row.max) / row.sum);
  }
}

template <typename T, typename In, typename Out>
MEMFATHOM_HD void log_softmax_row(int64_t n, const In& in, const Out& out) {
  const MaxAndSum<T> row = max_and_sum<T>(n, in);
  const T log_sum = math::log(row.sum);
  for (int64_t i = 0; i < n; ++i) {
    out.template set<T>(i, in.template get<T>(i) - row.max - log_sum);
  }
}

// dx = (dy - sum(dy * y)) * y
template <typename T, typename In, typename Y, typename Out>
MEMFATHOM_HD void softmax_backward_row(int64_t n, const In& dy, const Y& y, const Out& dx) {
  T sum = T(0);
  for (int64_t i = 0; i < n; ++i) sum += dy.template get<T>(i) * y.template get<T>(i);
  for (int64_t i = 0; i < n; ++i) {
    dx.template set<T>(i, (dy.template get<T>(i) - sum) * y.template get<T>(i));
  }
}

// dx = dy - exp(y) * sum(dy)
template <typename T, typename In, typename Y, typename Out>
MEMFATHOM_HD void log_softmax_backward_row(int64_t n, const In& dy, const Y& y, const Out& dx) {
  T sum = T(0);
  for (int64_t i = 0; i < n; ++i) sum += dy.template get<T>(i);
  for (int64_t i = 0; i < n; ++i) {
    dx.template set<T>(i, dy.template get<T>(i) - math::exp(y.template get<T>(i)) * sum);
  }
}

}  // namespace memfathom::element
