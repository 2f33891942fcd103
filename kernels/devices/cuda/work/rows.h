// Row work: reductions, softmax and negative log likelihood, one row per team.
#pragma once

#include "kernels/devices/cuda/work/team.h"
#include "kernels/devices/element/math.h"
#include "kernels/devices/element/nll.h"
#include "kernels/devices/element/split.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cuda {

template <typename T>
struct ReduceWork {
  Reduction op;
  element::Rows in;
  element::StridedSpan out;

  template <typename Team>
  MEMFATHOM_HD void operator()(const Team& team, int64_t r) const {
    const RowRef row = row_of(in, r);
    const int64_t n = row.size();
    T value = op == Reduction::kMax ? -T(INFINITY) : T(0);
    for (int64_t i = team.lane(); i < n; i += Team::kSize) {
      const T x = row.get<T>(i);
      value = op == Reduction::kMax ? element::math::max(value, x) : value + x;
    }
    value = op == Reduction::kMax ? team.max(value) : team.sum(value);
    if (op == Reduction::kMean) value /= T(n);
    if (team.lane() == 0) out.set<T>(r, value);
  }
};

// The kept dimensions of `in` index the rows, the reduced ones are inside.
inline element::Rows reduced_rows(const ReduceCall& call, Operand& kept_out) {
  Shape kept;
  Shape reduced;
  for (int d = 0; d < call.in.shape.rank(); ++d) {
    const bool keeps = call.in.shape[d] == call.out.shape[d];
    (keeps ? kept : reduced).push_back(d);
  }
  kept_out = element::permuted(call.out, kept);
  const int rows = kept.rank();
  for (const std::int64_t d : reduced) kept.push_back(d);
  return element::rows_from(element::permuted(call.in, kept), rows);
}

template <typename Executor>
void submit(Executor& executor, const ReduceCall& call) {
  Operand out;
  const element::Rows in = reduced_rows(call, out);
  const auto run = [&]<typename T>(T) {
    executor.rows(call.out.shape.elements(), ReduceWork<T>{call.op, in, element::whole(out)});
  };
  in_double(call.in.dtype) ? run(0.0) : run(0.0F);
}

template <typename T>
struct SoftmaxWork {
  Softmax op;
  bool backward;
  element::Rows out, in, y;

  template <typename Team>
  MEMFATHOM_HD void operator()(const Team& team, int64_t r) const {
    const RowRef target = row_of(out, r);
    const RowRef source = row_of(in, r);
    backward ? backward_row(team, target, source, row_of(y, r)) : forward_row(team, target, source);
  }

 private:
  template <typename Team>
  MEMFATHOM_HD void forward_row(const Team& team, const RowRef& target,
                                const RowRef& source) const {
    const int64_t n = source.size();
    T top = -T(INFINITY);
    for (int64_t i = team.lane(); i < n; i += Team::kSize)
      top = element::math::max(top, source.get<T>(i));
    top = team.max(top);
    T sum = T(0);
    for (int64_t i = team.lane(); i < n; i += Team::kSize)
      sum += element::math::exp(source.get<T>(i) - top);
    sum = team.sum(sum);
    const T log_sum = element::math::log(sum);
    for (int64_t i = team.lane(); i < n; i += Team::kSize) {
      const T x = source.get<T>(i) - top;
      target.set<T>(i, op == Softmax::kSoftmax ? element::math::exp(x) / sum : x - log_sum);
    }
  }

  template <typename Team>
  MEMFATHOM_HD void backward_row(const Team& team, const RowRef& target, const RowRef& gradient,
                                 const RowRef& output) const {
    const int64_t n = gradient.size();
    T sum = T(0);
    for (int64_t i = team.lane(); i < n; i += Team::kSize) {
      sum += gradient.get<T>(i) * (op == Softmax::kSoftmax ? output.get<T>(i) : T(1));
    }
    sum = team.sum(sum);
    for (int64_t i = team.lane(); i < n; i += Team::kSize) {
      const T g = gradient.get<T>(i);
      const T value = output.get<T>(i);
      target.set<T>(
          i, op == Softmax::kSoftmax ? (g - sum) * value : g - element::math::exp(value) * sum);
    }
  }
};

template <typename Executor>
void submit(Executor& executor, const SoftmaxCall& call) {
  const auto run = [&]<typename T>(T) {
    const element::Rows out = element::rows_along(call.out, call.dim);
    executor.rows(
        out.rows(),
        SoftmaxWork<T>{call.op, call.backward, out, element::rows_along(call.in, call.dim),
                       call.y ? element::rows_along(call.y, call.dim) : element::Rows{}});
  };
  in_double(call.in.dtype) ? run(0.0) : run(0.0F);
}

// One team sums all positions: a step computes its loss only once.
template <typename T>
struct NllWork {
  int64_t ignore_index;
  element::Rows classes;  // a row per position
  element::StridedSpan target, loss, total_weight;

  template <typename Team>
  MEMFATHOM_HD void operator()(const Team& team, int64_t) const {
    const int64_t n = target.size();
    T sum = T(0);
    T weight = T(0);
    for (int64_t i = team.lane(); i < n; i += Team::kSize) {
      const int64_t wanted = target.get<int64_t>(i);
      const RowRef row = row_of(classes, i);
      if (!element::nll_counts(wanted, row.size(), ignore_index)) continue;
      sum -= row.get<T>(wanted);
      weight += T(1);
    }
    sum = team.sum(sum);
    weight = team.sum(weight);
    if (team.lane() != 0) return;
    loss.set<T>(0, sum / weight);
    total_weight.set<T>(0, weight);
  }
};

template <typename T>
struct NllBackwardWork {
  int64_t ignore_index;
  element::Rows gradient;
  element::StridedSpan target, grad_loss, total_weight;

  MEMFATHOM_HD void operator()(int64_t i) const {
    element::nll_backward<T>(row_of(gradient, i), target.get<int64_t>(i), ignore_index,
                             grad_loss.get<T>(0), total_weight.get<T>(0));
  }
};

template <typename Executor>
void submit(Executor& executor, const NllCall& call) {
  const element::StridedSpan target = element::whole(call.target);
  const auto run = [&]<typename T>(T) {
    if (call.backward) {
      executor.each(
          call.target.shape.elements(),
          NllBackwardWork<T>{call.ignore_index, element::rows_along(call.grad_input, 1), target,
                             element::whole(call.grad_loss), element::whole(call.total_weight)});
    } else {
      executor.rows(
          1, NllWork<T>{call.ignore_index, element::rows_along(call.log_probabilities, 1), target,
                        element::whole(call.loss), element::whole(call.total_weight)});
    }
  };
  in_double(call.backward ? call.grad_input.dtype : call.log_probabilities.dtype) ? run(0.0)
                                                                                  : run(0.0F);
}

}  // namespace memfathom::cuda
