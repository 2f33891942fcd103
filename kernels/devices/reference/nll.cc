#include "kernels/devices/element/nll.h"

#include <fmt/core.h>

#include "core/error.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/compute_type.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {
namespace {

void check_target(std::int64_t target, std::int64_t classes, std::int64_t ignore_index) {
  if (target == ignore_index || (target >= 0 && target < classes)) return;
  throw Error(ErrorKind::kInput,
              fmt::format("target {} is not a class; there are {} classes", target, classes));
}

}  // namespace

void run_reference(const NllCall& call) {
  const Operand& scores = call.backward ? call.grad_input : call.log_probabilities;
  const element::Rows positions = element::rows_along(scores, 1);
  const element::StridedSpan targets = element::whole(call.target);
  const std::int64_t count = positions.rows(), classes = scores.shape[1];
  in_compute_type(computes_in_double({&scores}), [&](auto zero) {
    using T = decltype(zero);
    if (call.backward) {
      const T gradient = element::whole(call.grad_loss).get<T>(0);
      const T total = element::whole(call.total_weight).get<T>(0);
      for (std::int64_t i = 0; i < count; ++i) {
        element::nll_backward<T>(positions.row(i), targets.get<std::int64_t>(i), call.ignore_index,
                                 gradient, total);
      }
      return;
    }
    double sum = 0;
    std::int64_t counted = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t target = targets.get<std::int64_t>(i);
      check_target(target, classes, call.ignore_index);
      counted += element::nll_counts(target, classes, call.ignore_index) ? 1 : 0;
      sum += static_cast<double>(element::nll_loss<T>(positions.row(i), target, call.ignore_index));
    }
    element::whole(call.loss).set<double>(0, sum / static_cast<double>(counted));
    element::whole(call.total_weight).set<double>(0, static_cast<double>(counted));
  });
}

}  // namespace memfathom
