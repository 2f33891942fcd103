// Pooling and upsampling: plane by plane, each plane a dense array.
#include "kernels/devices/cpu/gather.h"
#include "kernels/devices/cpu/loops.h"
#include "kernels/devices/element/geometry.h"
#include "kernels/devices/reference/compute_type.h"

namespace memfathom::cpu {
namespace {

using element::Rows;
using element::StridedSpan;

// Calls compute(source plane, result plane, plane number) for every plane of [N, C, space...].
template <typename T, typename Compute>
void for_each_plane(const Operand& from, const Operand& to, Compute&& compute) {
  const Rows in = element::rows_from(from, 2), out = element::rows_from(to, 2);
  const std::int64_t planes = in.rows(), n_in = in.length(), n_out = out.length();
  const auto source = scratch<T>(n_in);
  const auto result = scratch<T>(n_out);
  for (std::int64_t r = 0; r < planes; ++r) {
    const StridedSpan target = out.row(r);
    const Dense<const T> plane{read(in.row(r), 0, n_in, source.get())};
    const Dense<T> values{begin_write(target, 0, result.get())};
    compute(plane, values, r);
    finish_write(target, 0, n_out, values.data);
  }
}

template <typename T>
void pool(const PoolCall& call) {
  const element::PoolGeometry geometry = element::geometry_of(call);
  const Rows indices = call.indices ? element::rows_from(call.indices, 2) : Rows{};
  if (call.backward) {
    const std::int64_t n = element::rows_from(call.dx, 2).length();
    for_each_plane<T>(call.dy, call.dx, [&](const auto& dy, const auto& dx, std::int64_t r) {
      const StridedSpan chosen = call.op == Pool::kMax ? indices.row(r) : StridedSpan{};
      for (std::int64_t i = 0; i < n; ++i)
        dx.data[i] = element::pool_backward<T>(geometry, dy, chosen, i);
    });
    return;
  }
  const std::int64_t n = element::rows_from(call.y, 2).length();
  for_each_plane<T>(call.x, call.y, [&](const auto& x, const auto& y, std::int64_t r) {
    const StridedSpan chosen = indices.row(r);
    for (std::int64_t o = 0; o < n; ++o) {
      if (call.op != Pool::kMax) {
        y.data[o] = element::average_pool<T>(geometry, x, o);
        continue;
      }
      const element::PoolMaximum<T> best = element::max_pool<T>(geometry, x, o);
      y.data[o] = best.value;
      if (chosen) chosen.set<std::int64_t>(o, best.index);
    }
  });
}

template <typename T>
void resize(const UpsampleCall& call) {
  const element::UpsampleGeometry geometry = element::geometry_of(call);
  const std::int64_t n = element::rows_from(call.out, 2).length();
  for_each_plane<T>(call.in, call.out, [&](const auto& in, const auto& out, std::int64_t) {
    for (std::int64_t i = 0; i < n; ++i) {
      out.data[i] = call.backward ? element::upsample_backward<T>(geometry, in, i)
                                  : element::upsample<T>(geometry, in, i);
    }
  });
}

}  // namespace

void run_loops(const PoolCall& call) {
  in_compute_type(computes_in_double({&call.x, &call.dx}),
                  [&](auto zero) { pool<decltype(zero)>(call); });
}

void run_loops(const UpsampleCall& call) {
  in_compute_type(computes_in_double({&call.in}), [&](auto zero) { resize<decltype(zero)>(call); });
}

}  // namespace memfathom::cpu
