#include "kernels/devices/element/geometry.h"
#include "kernels/devices/reference/compute_type.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {

void run_reference(const UpsampleCall& call) {
  const element::UpsampleGeometry geometry = element::geometry_of(call);
  const element::Rows in = element::rows_from(call.in, 2), out = element::rows_from(call.out, 2);
  const std::int64_t planes = out.rows(), size = out.length();
  in_compute_type(computes_in_double({&call.in}), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t r = 0; r < planes; ++r) {
      const element::StridedSpan source = in.row(r), result = out.row(r);
      for (std::int64_t i = 0; i < size; ++i) {
        result.set<T>(i, call.backward ? element::upsample_backward<T>(geometry, source, i)
                                       : element::upsample<T>(geometry, source, i));
      }
    }
  });
}

}  // namespace memfathom
