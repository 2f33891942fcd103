// Norm rows: layer, RMS, group and batch norm are one function of a row; they differ in what a row is (norm_rows.h).
// Weight, bias, mean and rstd are lanes as long as the row, by strides of 0. An absent lane has null data.
#pragma once

#include "kernels/element/lane.h"
#include "kernels/element/math.h"

namespace memfathom::element {

template <typename T>
struct Moments {
  T mean;
  T variance;  // biased; with kRms the mean square, and mean is 0
};

// Two passes: the squares are of differences from the mean, which keeps large means from cancelling.
template <typename T>
MEMFATHOM_HD Moments<T> moments(int64_t n, const Lane& x, bool rms) {
  T mean = T(0);
  if (!rms) {
    for (int64_t i = 0; i < n; ++i) mean += x.get<T>(i);
    mean /= T(n);
  }
  T squares = T(0);
  for (int64_t i = 0; i < n; ++i) {
    const T difference = x.get<T>(i) - mean;
    squares += difference * difference;
  }
  return {mean, squares / T(n)};
}

template <typename T>
MEMFATHOM_HD T reciprocal_deviation(T variance, double eps) {
  return T(1) / math::sqrt(variance + T(eps));
}

// y = (x - mean) * rstd * weight + bias
template <typename T>
MEMFATHOM_HD void normalize_row(int64_t n, const Lane& x, T mean, T rstd, const Lane& weight, const Lane& bias,
                                const Lane& y) {
  for (int64_t i = 0; i < n; ++i) {
    T value = (x.get<T>(i) - mean) * rstd;
    if (weight) value *= weight.get<T>(i);
    if (bias) value += bias.get<T>(i);
    y.set<T>(i, value);
  }
}

// dx of a row whose own statistics were used: g = dy * weight, h = normalized x,
// dx = rstd * (g - mean(g) - h * mean(g * h)); without mean(g) for RMS norm.
template <typename T>
MEMFATHOM_HD void normalize_backward_row(int64_t n, const Lane& dy, const Lane& x, T mean, T rstd,
                                         const Lane& weight, bool rms, const Lane& dx) {
  T sum_g = T(0), sum_gh = T(0);
  for (int64_t i = 0; i < n; ++i) {
    const T g = dy.get<T>(i) * (weight ? weight.get<T>(i) : T(1));
    sum_g += g;
    sum_gh += g * (x.get<T>(i) - mean) * rstd;
  }
  const T mean_g = rms ? T(0) : sum_g / T(n);
  const T mean_gh = sum_gh / T(n);
  for (int64_t i = 0; i < n; ++i) {
    const T g = dy.get<T>(i) * (weight ? weight.get<T>(i) : T(1));
    const T h = (x.get<T>(i) - mean) * rstd;
    dx.set<T>(i, rstd * (g - mean_g - h * mean_gh));
  }
}

// dx where the statistics were constants (batch norm in evaluation).
template <typename T>
MEMFATHOM_HD void scale_backward_row(int64_t n, const Lane& dy, T rstd, const Lane& weight, const Lane& dx) {
  for (int64_t i = 0; i < n; ++i) {
    dx.set<T>(i, dy.get<T>(i) * rstd * (weight ? weight.get<T>(i) : T(1)));
  }
}

// The gradients of one weight and one bias, from all the elements they touched. `mean` is absent for RMS norm.
template <typename T>
MEMFATHOM_HD T weight_gradient(int64_t n, const Lane& dy, const Lane& x, const Lane& mean, const Lane& rstd) {
  T sum = T(0);
  for (int64_t i = 0; i < n; ++i) {
    sum += dy.get<T>(i) * (x.get<T>(i) - (mean ? mean.get<T>(i) : T(0))) * rstd.get<T>(i);
  }
  return sum;
}

template <typename T>
MEMFATHOM_HD T lane_sum(int64_t n, const Lane& lane) {
  T sum = T(0);
  for (int64_t i = 0; i < n; ++i) sum += lane.get<T>(i);
  return sum;
}

}  // namespace memfathom::element
