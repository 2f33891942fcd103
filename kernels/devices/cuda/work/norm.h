// Norm work: forward and backward rows of layer, RMS, group and batch norm, and the columns of
// their parameters.
#pragma once

#include "kernels/devices/cuda/work/team.h"
#include "kernels/devices/element/norm.h"
#include "kernels/devices/element/norm_rows.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cuda {

template <typename T>
struct NormWork {
  element::NormRows rows;
  bool rms;
  bool running;  // batch norm in evaluation: uses the running statistics
  double eps, momentum;

  template <typename Team>
  MEMFATHOM_HD void operator()(const Team& team, int64_t r) const {
    const RowRef x = row_of(rows.x, r);
    const int64_t n = x.size();
    T mean = T(0);
    T variance = T(0);
    if (running) {
      mean = row_of(rows.running_mean, r).get<T>(0);
      variance = row_of(rows.running_var, r).get<T>(0);
    } else {
      T sum = T(0);
      for (int64_t i = team.lane(); !rms && i < n; i += Team::kSize) sum += x.get<T>(i);
      mean = team.sum(sum) / T(n);
      T squares = T(0);
      for (int64_t i = team.lane(); i < n; i += Team::kSize) {
        const T difference = x.get<T>(i) - mean;
        squares += difference * difference;
      }
      variance = team.sum(squares) / T(n);
    }
    const T rstd = element::reciprocal_deviation(variance, eps);
    const RowRef weight = row_of(rows.weight, r);
    const RowRef bias = row_of(rows.bias, r);
    const RowRef y = row_of(rows.y, r);
    for (int64_t i = team.lane(); i < n; i += Team::kSize) {
      T value = (x.get<T>(i) - mean) * rstd;
      if (weight) value *= weight.get<T>(i);
      if (bias) value += bias.get<T>(i);
      y.set<T>(i, value);
    }
    if (team.lane() == 0) write_statistics(r, n, mean, variance, rstd);
  }

 private:
  MEMFATHOM_HD void write_statistics(int64_t r, int64_t n, T mean, T variance, T rstd) const {
    if (rows.mean) row_of(rows.mean, r).set<T>(0, mean);
    if (rows.rstd) row_of(rows.rstd, r).set<T>(0, rstd);
    if (running || !rows.running_mean) return;
    const RowRef running_mean = row_of(rows.running_mean, r);
    const RowRef running_var = row_of(rows.running_var, r);
    // The running variance is unbiased, as in PyTorch.
    const T unbiased = n > 1 ? variance * T(n) / T(n - 1) : variance;
    running_mean.set<T>(0, running_mean.get<T>(0) * T(1 - momentum) + mean * T(momentum));
    running_var.set<T>(0, running_var.get<T>(0) * T(1 - momentum) + unbiased * T(momentum));
  }
};

template <typename T>
struct NormBackwardWork {
  element::NormRows rows;
  bool rms;
  bool running;
  double eps;

  template <typename Team>
  MEMFATHOM_HD void operator()(const Team& team, int64_t r) const {
    const RowRef x = row_of(rows.x, r);
    const RowRef dy = row_of(rows.dy, r);
    const RowRef dx = row_of(rows.dx, r);
    const RowRef weight = row_of(rows.weight, r);
    const int64_t n = x.size();
    if (running) {
      const T scale = element::reciprocal_deviation(row_of(rows.running_var, r).get<T>(0), eps);
      for (int64_t i = team.lane(); i < n; i += Team::kSize) {
        dx.set<T>(i, dy.get<T>(i) * scale * (weight ? weight.get<T>(i) : T(1)));
      }
      return;
    }
    const T mean = rms ? T(0) : row_of(rows.mean, r).get<T>(0);
    const T rstd = row_of(rows.rstd, r).get<T>(0);
    T sum_g = T(0);
    T sum_gh = T(0);
    for (int64_t i = team.lane(); i < n; i += Team::kSize) {
      const T g = dy.get<T>(i) * (weight ? weight.get<T>(i) : T(1));
      sum_g += g;
      sum_gh += g * (x.get<T>(i) - mean) * rstd;
    }
    const T mean_g = rms ? T(0) : team.sum(sum_g) / T(n);
    const T mean_gh = team.sum(sum_gh) / T(n);
    for (int64_t i = team.lane(); i < n; i += Team::kSize) {
      const T g = dy.get<T>(i) * (weight ? weight.get<T>(i) : T(1));
      const T h = (x.get<T>(i) - mean) * rstd;
      dx.set<T>(i, rstd * (g - mean_g - h * mean_gh));
    }
  }
};

template <typename T>
struct NormColumnWork {
  element::NormColumns columns;
  bool running;  // mean and rstd hold the running mean and variance
  double eps;

  template <typename Team>
  MEMFATHOM_HD void operator()(const Team& team, int64_t c) const {
    const RowRef x = row_of(columns.x, c);
    const RowRef dy = row_of(columns.dy, c);
    const RowRef mean = row_of(columns.mean, c);
    const RowRef rstd = row_of(columns.rstd, c);
    T weight = T(0);
    T bias = T(0);
    for (int64_t i = team.lane(); i < x.size(); i += Team::kSize) {
      const T g = dy.get<T>(i);
      const T scale = running ? element::reciprocal_deviation(rstd.get<T>(i), eps) : rstd.get<T>(i);
      weight += g * (x.get<T>(i) - (mean ? mean.get<T>(i) : T(0))) * scale;
      bias += g;
    }
    weight = team.sum(weight);
    bias = team.sum(bias);
    if (team.lane() != 0) return;
    if (columns.dweight) row_of(columns.dweight, c).set<T>(0, weight);
    if (columns.dbias) row_of(columns.dbias, c).set<T>(0, bias);
  }
};

template <typename T, typename Executor>
void submit_norm(Executor& executor, const NormCall& call) {
  const bool rms = call.op == Norm::kRms;
  const bool running = call.op == Norm::kBatch && !call.training;
  const element::NormRows rows = element::norm_rows(call);
  if (!call.backward) {
    return executor.rows(rows.x.rows(), NormWork<T>{rows, rms, running, call.eps, call.momentum});
  }
  if (call.dx) executor.rows(rows.x.rows(), NormBackwardWork<T>{rows, rms, running, call.eps});
  if (!call.dweight && !call.dbias) return;
  NormCall statistics = call;
  if (running) {
    statistics.mean = call.running_mean;
    statistics.rstd = call.running_var;
  }
  if (rms) statistics.mean = {};
  const element::NormColumns columns = element::norm_columns(statistics);
  executor.rows(columns.x.rows(), NormColumnWork<T>{columns, running, call.eps});
}

template <typename Executor>
void submit(Executor& executor, const NormCall& call) {
  in_double(call.x.dtype) ? submit_norm<double>(executor, call)
                          : submit_norm<float>(executor, call);
}

}  // namespace memfathom::cuda
