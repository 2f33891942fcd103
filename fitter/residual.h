// Residual: how far the prediction of one row is from its measurement, in standard deviations of
// its noise.
#pragma once

#include <array>
#include <cmath>

#include "core/predictor.h"
#include "fitter/parameters.h"
#include "fitter/rows.h"

namespace memfathom {

template <typename T>
T predict_row(const FitRow& row, const T* p, int parameters) {
  const ReplayedJob& job = row.replay;
  T total(0.0);
  T replayed(static_cast<double>(
      (row.metric == Metric::kAllocated ? job.allocated_peak : job.reserved_peak).count()));
  if (row.metric == Metric::kDevice) {
    std::array<T, kConstantCount> constants;
    constants.fill(T(0.0));
    constants[kContext] = p[kBase] * unit_of(kBase);
    for (int m = kFirstModule; m < kSolvedConstants; ++m)
      constants[constant_of(m)] = p[m] * unit_of(m);
    total = predict_device(job, constants.data());
  } else {
    total = replayed;
  }
  if (parameters == kSolvedConstants) return total;
  total += predict_unaccounted(job, p + kTheta);
  if (row.metric == Metric::kAllocated) {
    total -=
        (p[kTheta + static_cast<int>(kSlack)] - 1.0) * static_cast<double>(job.slack().count());
  }
  return total + (p[kThetaReplay] - 1.0) * replayed +
         p[kPerLayer] * (unit_of(kPerLayer) * static_cast<double>(job.layers));
}

// N is kSolvedConstants, or kParameterCount with the diagnostic factors.
template <int N>
struct RowResidual {
  const FitRow* row;
  double sigma;  // bytes

  template <typename T>
  bool operator()(const T* p, T* residual) const {
    const T predicted = predict_row(*row, p, N);
    const double scale = std::sqrt(row->weight) / sigma;
    if (row->is_censored()) {
      // A job that fitted says only "at most the capacity", one that did not "at least": no pull on
      // the right side of it.
      const T excess = predicted - static_cast<double>(row->capacity.count());
      const bool contradicts = *row->fits ? excess > 0.0 : excess < 0.0;
      residual[0] = contradicts ? T(excess * scale) : T(0.0);
    } else {
      residual[0] = (predicted - static_cast<double>(row->measured->count())) * scale;
    }
    return true;
  }
};

template <int N>
struct PriorResidual {
  int parameter;
  double mean;  // in units of the solver's variable
  double sigma;

  template <typename T>
  bool operator()(const T* p, T* residual) const {
    residual[0] = (p[parameter] - mean) / sigma;
    return true;
  }
};

}  // namespace memfathom
