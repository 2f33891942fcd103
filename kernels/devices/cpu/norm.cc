#include "kernels/devices/element/norm.h"

#include <vector>

#include "kernels/devices/cpu/gather.h"
#include "kernels/devices/cpu/loops.h"
#include "kernels/devices/element/norm_rows.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom::cpu {
namespace {

using element::NormColumns;
using element::NormRows;
using element::Rows;
using element::StridedSpan;

// Rows as fp32 arrays; the row functions compute in fp64 to stay accurate over millions of
// elements.
class RowReader {
 public:
  explicit RowReader(std::int64_t length) : length_(length) {}

  // Absent rows give an absent array. The array is valid until the same slot is read again.
  Dense<float> operator()(int slot, const Rows& rows, std::int64_t r) {
    if (!rows) return {};
    auto& buffer = buffers_[slot];
    const StridedSpan lane = rows.row(r);
    if (!buffer && !is_dense<float>(lane)) buffer = scratch<float>(length_);
    return {const_cast<float*>(read(lane, 0, length_, buffer.get()))};
  }

 private:
  std::int64_t length_;
  std::unique_ptr<float[]> buffers_[4];
};

// Running statistics use the unbiased variance, as in torch.
void update_running(const NormCall& call, const NormRows& rows, std::int64_t r,
                    const element::Moments<double>& m) {
  const double n = static_cast<double>(rows.x.length());
  const double unbiased = n > 1 ? m.variance * n / (n - 1) : m.variance;
  const auto follow = [&call](const StridedSpan& running, double value) {
    if (running)
      running.set<double>(0, (1 - call.momentum) * running.get<double>(0) + call.momentum * value);
  };
  follow(rows.running_mean.row(r), m.mean);
  follow(rows.running_var.row(r), unbiased);
}

void forward(const NormCall& call) {
  const NormRows rows = element::norm_rows(call);
  const std::int64_t count = rows.x.rows(), n = rows.x.length();
  RowReader reader(n);
  const auto result = scratch<float>(n);
  for (std::int64_t r = 0; r < count; ++r) {
    const Dense<float> x = reader(0, rows.x, r);
    const auto m = element::moments<double>(n, x, call.op == Norm::kRms);
    const double rstd = element::reciprocal_deviation(m.variance, call.eps);
    if (rows.mean) rows.mean.row(r).set<double>(0, m.mean);
    if (rows.rstd) rows.rstd.row(r).set<double>(0, rstd);
    if (call.op == Norm::kBatch) update_running(call, rows, r, m);
    const StridedSpan y = rows.y.row(r);
    const Dense<float> to{begin_write(y, 0, result.get())};
    element::normalize_row<double>(n, x, m.mean, rstd, reader(1, rows.weight, r),
                                   reader(2, rows.bias, r), to);
    finish_write(y, 0, n, to.data);
  }
}

void backward_input(const NormCall& call) {
  const NormRows rows = element::norm_rows(call);
  const std::int64_t count = rows.x.rows(), n = rows.x.length();
  RowReader reader(n);
  const auto result = scratch<float>(n);
  for (std::int64_t r = 0; r < count; ++r) {
    const double mean = rows.mean ? rows.mean.row(r).get<double>(0) : 0.0;
    const double rstd = rows.rstd.row(r).get<double>(0);
    const StridedSpan dx = rows.dx.row(r);
    const Dense<float> to{begin_write(dx, 0, result.get())};
    element::normalize_backward_row<double>(n, reader(0, rows.dy, r), reader(1, rows.x, r), mean,
                                            rstd, reader(2, rows.weight, r), call.op == Norm::kRms,
                                            to);
    finish_write(dx, 0, n, to.data);
  }
}

// One weight per channel: its elements are in long runs.
void backward_channels(const NormCall& call) {
  const NormColumns columns = element::norm_columns(call);
  const std::int64_t count = columns.x.rows(), n = columns.x.length();
  RowReader reader(n);
  for (std::int64_t c = 0; c < count; ++c) {
    const Dense<float> dy = reader(0, columns.dy, c);
    if (columns.dweight) {
      columns.dweight.row(c).set<double>(
          0,
          element::weight_gradient<double>(n, dy, reader(1, columns.x, c),
                                           reader(2, columns.mean, c), reader(3, columns.rstd, c)));
    }
    if (columns.dbias) columns.dbias.row(c).set<double>(0, element::span_sum<double>(n, dy));
  }
}

// One weight per feature: its elements are a row apart, so all features are summed row by row.
void backward_features(const NormCall& call) {
  const NormRows rows = element::norm_rows(call);
  const std::int64_t count = rows.x.rows(), n = rows.x.length();
  RowReader reader(n);
  std::vector<double> dweight(static_cast<std::size_t>(n)), dbias(static_cast<std::size_t>(n));
  for (std::int64_t r = 0; r < count; ++r) {
    const float* dy = reader(0, rows.dy, r).data;
    const float* x = reader(1, rows.x, r).data;
    const double mean = rows.mean ? rows.mean.row(r).get<double>(0) : 0.0;
    const double rstd = rows.rstd.row(r).get<double>(0);
    for (std::int64_t i = 0; i < n; ++i) {
      dweight[static_cast<std::size_t>(i)] += double(dy[i]) * (double(x[i]) - mean) * rstd;
      dbias[static_cast<std::size_t>(i)] += double(dy[i]);
    }
  }
  if (call.dweight) scatter(element::whole(call.dweight), 0, n, dweight.data());
  if (call.dbias) scatter(element::whole(call.dbias), 0, n, dbias.data());
}

}  // namespace

void run_loops(const NormCall& call) {
  const bool own_statistics = call.op != Norm::kBatch || call.training;
  if (call.x.dtype == DType::kFp64 || !own_statistics) return run_reference(call);
  if (!call.backward) return forward(call);
  const bool per_channel = call.op == Norm::kGroup || call.op == Norm::kBatch;
  if (call.dx) backward_input(call);
  if (call.dweight || call.dbias) per_channel ? backward_channels(call) : backward_features(call);
}

}  // namespace memfathom::cpu
