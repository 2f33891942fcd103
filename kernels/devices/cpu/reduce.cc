#include <algorithm>
#include <vector>

#include "kernels/devices/cpu/gather.h"
#include "kernels/devices/cpu/loops.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/compute_type.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom::cpu {
namespace {

// The position of each input element in the dense result: stride 0 in reduced dimensions.
Operand destinations(const ReduceCall& call) {
  Operand result{nullptr, DType::kFp64, call.in.shape, element::contiguous_strides(call.out.shape)};
  for (int d = 0; d < call.in.shape.rank(); ++d) {
    if (call.out.shape[d] != call.in.shape[d]) result.strides[d] = 0;
  }
  return result;
}

template <typename T>
void sum(const ReduceCall& call) {
  const int rank = call.in.shape.rank();
  const element::Rows in = element::rows_from(call.in, rank - 1);
  const Operand to = destinations(call);
  const element::StridedSpan starts = element::span_over(to, 0, rank - 1);
  const bool keeps_last = to.strides[-1] != 0;
  const std::int64_t rows = in.rows(), n = in.length();
  std::vector<double> sums(static_cast<std::size_t>(call.out.shape.elements()));
  const auto buffer = scratch<T>(n);
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* values = read(in.row(r), 0, n, buffer.get());
    double* target = sums.data() + starts.offset(r);
    if (keeps_last) {
      for (std::int64_t i = 0; i < n; ++i) target[i] += double(values[i]);
    } else {
      double total = 0;
      for (std::int64_t i = 0; i < n; ++i) total += double(values[i]);
      *target += total;
    }
  }
  if (call.op == Reduction::kMean) {
    const double count =
        static_cast<double>(call.in.shape.elements()) / static_cast<double>(sums.size());
    for (double& value : sums) value /= count;
  }
  scatter(element::whole(call.out), 0, static_cast<std::int64_t>(sums.size()), sums.data());
}

}  // namespace

void run_loops(const ReduceCall& call) {
  if (call.op == Reduction::kMax || call.in.shape.rank() == 0 || call.in.shape.elements() == 0) {
    return run_reference(call);
  }
  in_compute_type(computes_in_double({&call.in}), [&](auto zero) { sum<decltype(zero)>(call); });
}

}  // namespace memfathom::cpu
