#include "kernels/devices/element/math.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/compute_type.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {
namespace {

using element::Rows;
using element::StridedSpan;

template <typename T>
T reduce(Reduction op, std::int64_t n, const StridedSpan& lane) {
  if (op == Reduction::kMax) {
    T top = lane.get<T>(0);
    for (std::int64_t i = 1; i < n; ++i) top = element::math::max(top, lane.get<T>(i));
    return top;
  }
  // Sums in fp64, so that the reference is insensitive to the order of the elements.
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += lane.get<double>(i);
  return T(op == Reduction::kMean ? sum / static_cast<double>(n) : sum);
}

}  // namespace

void run_reference(const ReduceCall& call) {
  Shape order;
  for (int d = 0; d < call.in.shape.rank(); ++d) {
    if (call.out.shape[d] == call.in.shape[d]) order.push_back(d);
  }
  const int kept = order.rank();
  for (int d = 0; d < call.in.shape.rank(); ++d) {
    if (call.out.shape[d] != call.in.shape[d]) order.push_back(d);
  }
  const Rows in = element::rows_from(element::permuted(call.in, order), kept);
  const Rows out = element::rows_from(element::permuted(call.out, order), kept);
  const std::int64_t rows = in.rows(), length = in.length();
  in_compute_type(computes_in_double({&call.in}), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t r = 0; r < rows; ++r)
      out.row(r).set<T>(0, reduce<T>(call.op, length, in.row(r)));
  });
}

}  // namespace memfathom
