#include "kernels/devices/element/geometry.h"
#include "kernels/devices/reference/compute_type.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {
namespace {

using element::Rows;

template <typename T>
void forward(const PoolCall& call) {
  const element::PoolGeometry geometry = element::geometry_of(call);
  const Rows x = element::rows_from(call.x, 2), y = element::rows_from(call.y, 2);
  const Rows indices = call.indices ? element::rows_from(call.indices, 2) : Rows{};
  const std::int64_t planes = x.rows(), outputs = y.length();
  for (std::int64_t r = 0; r < planes; ++r) {
    const element::StridedSpan in = x.row(r), out = y.row(r), chosen = indices.row(r);
    for (std::int64_t o = 0; o < outputs; ++o) {
      if (call.op != Pool::kMax) {
        out.set<T>(o, element::average_pool<T>(geometry, in, o));
        continue;
      }
      const element::PoolMaximum<T> best = element::max_pool<T>(geometry, in, o);
      out.set<T>(o, best.value);
      if (chosen) chosen.set<std::int64_t>(o, best.index);
    }
  }
}

template <typename T>
void backward(const PoolCall& call) {
  const element::PoolGeometry geometry = element::geometry_of(call);
  const Rows dy = element::rows_from(call.dy, 2), dx = element::rows_from(call.dx, 2);
  const Rows indices = call.op == Pool::kMax ? element::rows_from(call.indices, 2) : Rows{};
  const std::int64_t planes = dx.rows(), inputs = dx.length();
  for (std::int64_t r = 0; r < planes; ++r) {
    const element::StridedSpan gradient = dy.row(r), chosen = indices.row(r), result = dx.row(r);
    for (std::int64_t i = 0; i < inputs; ++i) {
      result.set<T>(i, element::pool_backward<T>(geometry, gradient, chosen, i));
    }
  }
}

}  // namespace

void run_reference(const PoolCall& call) {
  in_compute_type(computes_in_double({&call.x, &call.dx}), [&](auto zero) {
    using T = decltype(zero);
    call.backward ? backward<T>(call) : forward<T>(call);
  });
}

}  // namespace memfathom
