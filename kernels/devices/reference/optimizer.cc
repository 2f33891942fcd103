#include "kernels/devices/element/optimizer.h"

#include "kernels/devices/element/geometry.h"
#include "kernels/devices/reference/compute_type.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {
namespace {

template <typename T>
void step(Optimizer op, const element::StepOptions<T>& options, element::ElementState<T>& state) {
  switch (op) {
    case Optimizer::kSgd: return element::sgd_step(options, state);
    case Optimizer::kAdam: return element::adam_step(options, false, state);
    case Optimizer::kAdamW: return element::adam_step(options, true, state);
    case Optimizer::kRmsprop: return element::rmsprop_step(options, state);
    case Optimizer::kAdagrad: return element::adagrad_step(options, state);
  }
}

}  // namespace

void run_reference(const OptimizerCall& call) {
  const element::StridedSpan parameter = element::whole(call.parameter),
                             gradient = element::whole(call.gradient);
  const element::StridedSpan state1 = element::whole(call.state1),
                             state2 = element::whole(call.state2);
  const std::int64_t n = call.parameter.shape.elements();
  in_compute_type(computes_in_double({&call.parameter}), [&](auto zero) {
    using T = decltype(zero);
    const element::StepOptions<T> options = element::step_options<T>(call);
    for (std::int64_t i = 0; i < n; ++i) {
      element::ElementState<T> e{parameter.get<T>(i), gradient.get<T>(i),
                                 state1 ? state1.get<T>(i) : T(0),
                                 state2 ? state2.get<T>(i) : T(0)};
      step(call.op, options, e);
      parameter.set<T>(i, e.parameter);
      if (state1) state1.set<T>(i, e.state1);
      if (state2) state2.set<T>(i, e.state2);
    }
  });
}

}  // namespace memfathom
