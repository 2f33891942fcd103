#include "kernels/devices/element/random.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/compute_type.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {

void run_reference(const DropoutCall& call) {
  const element::StridedSpan x = element::whole(call.x), y = element::whole(call.y),
                             mask = element::whole(call.mask);
  const std::int64_t n = call.x.shape.elements();
  const double scale = call.p < 1 ? 1 / (1 - call.p) : 0;
  in_compute_type(computes_in_double({&call.x}), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < n; ++i) {
      const bool kept =
          element::dropout_keeps(call.seed, call.offset, static_cast<std::uint64_t>(i), call.p);
      if (call.mask) mask.set<T>(i, kept ? T(1) : T(0));
      y.set<T>(i, kept ? x.get<T>(i) * T(scale) : T(0));
    }
  });
}

}  // namespace memfathom
