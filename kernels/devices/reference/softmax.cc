#include "kernels/devices/element/softmax.h"

#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {

void run_reference(const SoftmaxCall& call) {
  const element::Rows in = element::rows_along(call.in, call.dim);
  const element::Rows out = element::rows_along(call.out, call.dim);
  const element::Rows y = call.backward ? element::rows_along(call.y, call.dim) : element::Rows{};
  const std::int64_t rows = in.rows(), n = in.length();
  if (n == 0) return;
  const bool plain = call.op == Softmax::kSoftmax;
  for (std::int64_t r = 0; r < rows; ++r) {
    if (call.backward && plain) {
      element::softmax_backward_row<double>(n, in.row(r), y.row(r), out.row(r));
    } else if (call.backward) {
      element::log_softmax_backward_row<double>(n, in.row(r), y.row(r), out.row(r));
    } else if (plain) {
      element::softmax_row<double>(n, in.row(r), out.row(r));
    } else {
      element::log_softmax_row<double>(n, in.row(r), out.row(r));
    }
  }
}

}  // namespace memfathom
