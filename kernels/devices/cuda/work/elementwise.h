// Element-wise work: one output element of an ElementwiseCall, of dropout and of an optimizer step.
#pragma once

#include "kernels/devices/cuda/work/team.h"
#include "kernels/devices/element/geometry.h"
#include "kernels/devices/element/random.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/element/visit_elementwise.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cuda {

// One kernel per arithmetic type, with a switch over the operation: a uniform branch costs less
// than compiling, loading and keeping sixty kernels in the context.
template <typename T>
struct ElementwiseWork {
  Elementwise op;
  element::StridedSpan out, a, b, c;
  element::Scalars<T> scalars;

  struct Apply {
    T a, b, c;
    const element::Scalars<T>& scalars;
    T& result;
    template <typename Function>
    MEMFATHOM_HD void operator()(Function function) const {
      result = function(a, b, c, scalars);
    }
  };

  MEMFATHOM_HD void operator()(int64_t i) const {
    T result{};
    const Apply apply{a ? a.template get<T>(i) : T{}, b ? b.template get<T>(i) : T{},
                      c ? c.template get<T>(i) : T{}, scalars, result};
    choose(apply);
    out.template set<T>(i, result);
  }

 private:
  MEMFATHOM_HD void choose(const Apply& apply) const { element::visit_elementwise(op, apply); }
};

template <>
MEMFATHOM_HD inline void ElementwiseWork<element::Complex>::choose(const Apply& apply) const {
  element::visit_complex_elementwise(op, apply);
}

template <typename T, typename Executor>
void submit_as(Executor& executor, const ElementwiseCall& call) {
  const auto& s = call.scalars;
  const auto input = [&](const Operand& operand) {
    return operand ? element::whole(element::broadcast_to(operand, call.out.shape))
                   : element::StridedSpan{};
  };
  executor.each(call.out.shape.elements(),
                ElementwiseWork<T>{call.op,
                                   element::whole(call.out),
                                   input(call.a),
                                   input(call.b),
                                   input(call.c),
                                   {T(s[0]), T(s[1]), T(s[2]), T(s[3])}});
}

template <typename Executor>
void submit(Executor& executor, const ElementwiseCall& call) {
  bool complex = false;
  bool wide = false;
  for (const Operand* operand : {&call.out, &call.a, &call.b, &call.c}) {
    if (!*operand) continue;
    complex = complex || is_complex(operand->dtype);
    wide = wide || in_double(operand->dtype);
  }
  if (complex) return submit_as<element::Complex>(executor, call);
  return wide ? submit_as<double>(executor, call) : submit_as<float>(executor, call);
}

template <typename T>
struct DropoutWork {
  double p;
  uint64_t seed, offset;
  element::StridedSpan x, y, mask;

  MEMFATHOM_HD void operator()(int64_t i) const {
    const bool keeps = element::dropout_keeps(seed, offset, uint64_t(i), p);
    y.template set<T>(i, keeps ? x.template get<T>(i) * T(1 / (1 - p)) : T(0));
    if (mask) mask.template set<T>(i, keeps ? T(1) : T(0));
  }
};

template <typename Executor>
void submit(Executor& executor, const DropoutCall& call) {
  const auto run = [&]<typename T>(T) {
    executor.each(call.y.shape.elements(),
                  DropoutWork<T>{call.p, call.seed, call.offset, element::whole(call.x),
                                 element::whole(call.y), element::whole(call.mask)});
  };
  in_double(call.y.dtype) ? run(0.0) : run(0.0F);
}

template <typename T>
struct OptimizerWork {
  Optimizer op;
  element::StepOptions<T> options;
  element::StridedSpan parameter, gradient, state1, state2;

  MEMFATHOM_HD void operator()(int64_t i) const {
    element::ElementState<T> e{parameter.template get<T>(i), gradient.template get<T>(i),
                               state1 ? state1.template get<T>(i) : T(0),
                               state2 ? state2.template get<T>(i) : T(0)};
    switch (op) {
      case Optimizer::kSgd: element::sgd_step(options, e); break;
      case Optimizer::kAdam: element::adam_step(options, false, e); break;
      case Optimizer::kAdamW: element::adam_step(options, true, e); break;
      case Optimizer::kRmsprop: element::rmsprop_step(options, e); break;
      case Optimizer::kAdagrad: element::adagrad_step(options, e); break;
    }
    parameter.template set<T>(i, e.parameter);
    if (state1) state1.template set<T>(i, e.state1);
    if (state2) state2.template set<T>(i, e.state2);
  }
};

template <typename Executor>
void submit(Executor& executor, const OptimizerCall& call) {
  const auto run = [&]<typename T>(T) {
    executor.each(call.parameter.shape.elements(),
                  OptimizerWork<T>{call.op, element::step_options<T>(call),
                                   element::whole(call.parameter), element::whole(call.gradient),
                                   element::whole(call.state1), element::whole(call.state2)});
  };
  in_double(call.parameter.dtype) ? run(0.0) : run(0.0F);
}

}  // namespace memfathom::cuda
