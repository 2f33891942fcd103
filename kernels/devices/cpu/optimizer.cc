#include "kernels/devices/element/optimizer.h"

#include <algorithm>

#include "kernels/devices/cpu/gather.h"
#include "kernels/devices/cpu/loops.h"
#include "kernels/devices/element/geometry.h"
#include "kernels/devices/reference/compute_type.h"

namespace memfathom::cpu {
namespace {

using element::ElementState;
using element::StepOptions;
using element::StridedSpan;

constexpr std::int64_t kStretch = 1024;

template <typename T, typename Step>
void update(const OptimizerCall& call, Step step) {
  const StridedSpan lanes[4] = {element::whole(call.parameter), element::whole(call.gradient),
                                element::whole(call.state1), element::whole(call.state2)};
  const std::int64_t size = call.parameter.shape.elements();
  T buffers[4][kStretch] = {};
  for (std::int64_t first = 0; first < size; first += kStretch) {
    const std::int64_t n = std::min(kStretch, size - first);
    for (int i = 0; i < 4; ++i) {
      if (lanes[i]) gather(lanes[i], first, n, buffers[i]);
    }
    for (std::int64_t i = 0; i < n; ++i) {
      ElementState<T> e{buffers[0][i], buffers[1][i], buffers[2][i], buffers[3][i]};
      step(e);
      buffers[0][i] = e.parameter;
      buffers[2][i] = e.state1;
      buffers[3][i] = e.state2;
    }
    for (const int i : {0, 2, 3}) {
      if (lanes[i]) scatter(lanes[i], first, n, buffers[i]);
    }
  }
}

}  // namespace

void run_loops(const OptimizerCall& call) {
  in_compute_type(computes_in_double({&call.parameter}), [&](auto zero) {
    using T = decltype(zero);
    const StepOptions<T> options = element::step_options<T>(call);
    using State = ElementState<T>;
    switch (call.op) {
      case Optimizer::kSgd:
        return update<T>(call, [&](State& e) { element::sgd_step(options, e); });
      case Optimizer::kAdam:
        return update<T>(call, [&](State& e) { element::adam_step(options, false, e); });
      case Optimizer::kAdamW:
        return update<T>(call, [&](State& e) { element::adam_step(options, true, e); });
      case Optimizer::kRmsprop:
        return update<T>(call, [&](State& e) { element::rmsprop_step(options, e); });
      case Optimizer::kAdagrad:
        return update<T>(call, [&](State& e) { element::adagrad_step(options, e); });
    }
  });
}

}  // namespace memfathom::cpu
