#include "kernels/devices/element/norm.h"

#include "kernels/devices/element/norm_rows.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {
namespace {

using element::NormColumns;
using element::NormRows;
using element::StridedSpan;

// Running statistics use the unbiased variance, as in torch.
void update_running(const NormCall& call, const NormRows& rows, std::int64_t r,
                    const element::Moments<double>& m) {
  const double momentum = call.momentum;
  const double n = static_cast<double>(rows.x.length());
  const StridedSpan mean = rows.running_mean.row(r), variance = rows.running_var.row(r);
  if (mean) mean.set<double>(0, (1 - momentum) * mean.get<double>(0) + momentum * m.mean);
  if (variance) {
    const double unbiased = n > 1 ? m.variance * n / (n - 1) : m.variance;
    variance.set<double>(0, (1 - momentum) * variance.get<double>(0) + momentum * unbiased);
  }
}

void forward(const NormCall& call) {
  const NormRows rows = element::norm_rows(call);
  const std::int64_t count = rows.x.rows(), n = rows.x.length();
  const bool own_statistics = call.op != Norm::kBatch || call.training;
  for (std::int64_t r = 0; r < count; ++r) {
    element::Moments<double> m{};
    if (own_statistics) {
      m = element::moments<double>(n, rows.x.row(r), call.op == Norm::kRms);
      if (call.op == Norm::kBatch) update_running(call, rows, r, m);
    } else {
      m = {rows.running_mean.row(r).get<double>(0), rows.running_var.row(r).get<double>(0)};
    }
    const double rstd = element::reciprocal_deviation(m.variance, call.eps);
    if (rows.mean) rows.mean.row(r).set<double>(0, m.mean);
    if (rows.rstd) rows.rstd.row(r).set<double>(0, rstd);
    element::normalize_row<double>(n, rows.x.row(r), m.mean, rstd, rows.weight.row(r),
                                   rows.bias.row(r), rows.y.row(r));
  }
}

void backward_input(const NormCall& call) {
  const NormRows rows = element::norm_rows(call);
  const std::int64_t count = rows.x.rows(), n = rows.x.length();
  for (std::int64_t r = 0; r < count; ++r) {
    const double mean = rows.mean ? rows.mean.row(r).get<double>(0) : 0.0;
    const double rstd = rows.rstd.row(r).get<double>(0);
    if (call.op == Norm::kBatch && !call.training) {
      element::scale_backward_row<double>(n, rows.dy.row(r), rstd, rows.weight.row(r),
                                          rows.dx.row(r));
    } else {
      element::normalize_backward_row<double>(n, rows.dy.row(r), rows.x.row(r), mean, rstd,
                                              rows.weight.row(r), call.op == Norm::kRms,
                                              rows.dx.row(r));
    }
  }
}

void backward_parameters(const NormCall& call) {
  const NormColumns columns = element::norm_columns(call);
  const std::int64_t count = columns.x.rows(), n = columns.x.length();
  for (std::int64_t c = 0; c < count; ++c) {
    if (columns.dweight) {
      columns.dweight.row(c).set<double>(
          0, element::weight_gradient<double>(n, columns.dy.row(c), columns.x.row(c),
                                              columns.mean.row(c), columns.rstd.row(c)));
    }
    if (columns.dbias)
      columns.dbias.row(c).set<double>(0, element::span_sum<double>(n, columns.dy.row(c)));
  }
}

// In evaluation some callers save no statistics: the running ones suffice.
NormCall with_statistics(const NormCall& call, std::vector<double>& mean,
                         std::vector<double>& rstd) {
  NormCall complete = call;
  if (!call.backward || call.op != Norm::kBatch || call.training || call.rstd) return complete;
  const std::int64_t channels = call.x.shape[1];
  const StridedSpan running_mean = element::whole(call.running_mean),
                    running_var = element::whole(call.running_var);
  for (std::int64_t c = 0; c < channels; ++c) {
    mean.push_back(running_mean.get<double>(c));
    rstd.push_back(element::reciprocal_deviation(running_var.get<double>(c), call.eps));
  }
  complete.mean = {mean.data(), DType::kFp64, {channels}, {1}};
  complete.rstd = {rstd.data(), DType::kFp64, {channels}, {1}};
  return complete;
}

}  // namespace

void run_reference(const NormCall& given) {
  std::vector<double> mean, rstd;
  const NormCall call = with_statistics(given, mean, rstd);
  if (!call.backward) return forward(call);
  if (call.dx) backward_input(call);
  if (call.dweight || call.dbias) backward_parameters(call);
}

}  // namespace memfathom
