#include "kernels/devices/element/softmax.h"

#include "kernels/devices/cpu/gather.h"
#include "kernels/devices/cpu/loops.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/compute_type.h"

namespace memfathom::cpu {

void run_loops(const SoftmaxCall& call) {
  const element::Rows in = element::rows_along(call.in, call.dim),
                      out = element::rows_along(call.out, call.dim);
  const element::Rows y = call.backward ? element::rows_along(call.y, call.dim) : element::Rows{};
  const std::int64_t rows = in.rows(), n = in.length();
  if (n == 0) return;
  const bool plain = call.op == Softmax::kSoftmax;
  in_compute_type(computes_in_double({&call.in, &call.out}), [&](auto zero) {
    using T = decltype(zero);
    const auto buffer = scratch<T>(3 * n);
    for (std::int64_t r = 0; r < rows; ++r) {
      const Dense<const T> x{read(in.row(r), 0, n, buffer.get())};
      const Dense<T> result{begin_write(out.row(r), 0, buffer.get() + n)};
      if (call.backward) {
        const Dense<const T> forward{read(y.row(r), 0, n, buffer.get() + 2 * n)};
        plain ? element::softmax_backward_row<T>(n, x, forward, result)
              : element::log_softmax_backward_row<T>(n, x, forward, result);
      } else {
        plain ? element::softmax_row<T>(n, x, result) : element::log_softmax_row<T>(n, x, result);
      }
      finish_write(out.row(r), 0, n, result.data);
    }
  });
}

}  // namespace memfathom::cpu
