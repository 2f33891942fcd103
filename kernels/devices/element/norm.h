// Norm rows: layer, RMS, group and batch norm share one row function; they differ in the definition
// of a row (norm_rows.h). Weight, bias, mean and rstd are spans as long as the row, with strides of
// 0. An absent span has null data. L is StridedSpan or a type with its get, set and bool.
#pragma once

#include "kernels/devices/element/math.h"
#include "kernels/devices/element/strided_span.h"

namespace memfathom::element {

template <typename T>
struct Moments {
  T mean;
  T variance;  // biased; for kRms the mean square, and mean is 0
};

// Two passes: squares of differences from the mean avoid cancellation for large means.
template <typename T, typename L>
MEMFATHOM_HD Moments<T> moments(int64_t n, const L& x, bool rms) {
  T mean = T(0);
  if (!rms) {
    for (int64_t i = 0; i < n; ++i) mean += x.template get<T>(i);
    mean /= T(n);
  }
  T squares = T(0);
  for (int64_t i = 0; i < n; ++i) {
    const T difference = x.template get<T>(i) - mean;
    squares += difference * difference;
  }
  return {mean, squares / T(n)};
}

template <typename T>
MEMFATHOM_HD T reciprocal_deviation(T variance, double eps) {
  return T(1) / math::sqrt(variance + T(eps));
}

// y = (x - mean) * rstd * weight + bias
template <typename T, typename L>
MEMFATHOM_HD void normalize_row(int64_t n, const L& x, T mean, T rstd, const L& weight,
                                const L& bias, const L& y) {
  for (int64_t i = 0; i < n; ++i) {
    T value = (x.template get<T>(i) - mean) * rstd;
    if (weight) value *= weight.template get<T>(i);
    if (bias) value += bias.template get<T>(i);
    y.template set<T>(i, value);
  }
}

// dx of a row with its own statistics: g = dy * weight, h = normalized x, dx = rstd * (g - mean(g)
// - h * mean(g * h)); without mean(g) for RMS norm.
template <typename T, typename L>
MEMFATHOM_HD void normalize_backward_row(int64_t n, const L& dy, const L& x, T mean, T rstd,
                                         const L& weight, bool rms, const L& dx) {
  T sum_g = T(0), sum_gh = T(0);
  for (int64_t i = 0; i < n; ++i) {
    const T g = dy.template get<T>(i) * (weight ? weight.template get<T>(i) : T(1));
    sum_g += g;
    sum_gh += g * (x.template get<T>(i) - mean) * rstd;
  }
  const T mean_g = rms ? T(0) : sum_g / T(n);
  const T mean_gh = sum_gh / T(n);
  for (int64_t i = 0; i < n; ++i) {
    const T g = dy.template get<T>(i) * (weight ? weight.template get<T>(i) : T(1));
    const T h = (x.template get<T>(i) - mean) * rstd;
    dx.template set<T>(i, rstd * (g - mean_g - h * mean_gh));
  }
}

// dx with constant statistics (batch norm in evaluation).
template <typename T, typename L>
MEMFATHOM_HD void scale_backward_row(int64_t n, const L& dy, T rstd, const L& weight, const L& dx) {
  for (int64_t i = 0; i < n; ++i) {
    dx.template set<T>(i,
                       dy.template get<T>(i) * rstd * (weight ? weight.template get<T>(i) : T(1)));
  }
}

// The gradients of one weight and one bias, from all elements that use them. `mean` is absent for
// RMS norm.
template <typename T, typename L>
MEMFATHOM_HD T weight_gradient(int64_t n, const L& dy, const L& x, const L& mean, const L& rstd) {
  T sum = T(0);
  for (int64_t i = 0; i < n; ++i) {
    sum += dy.template get<T>(i) *
           (x.template get<T>(i) - (mean ? mean.template get<T>(i) : T(0))) *
           rstd.template get<T>(i);
  }
  return sum;
}

template <typename T, typename L>
MEMFATHOM_HD T span_sum(int64_t n, const L& lane) {
  T sum = T(0);
  for (int64_t i = 0; i < n; ++i) sum += lane.template get<T>(i);
  return sum;
}

}  // namespace memfathom::element
