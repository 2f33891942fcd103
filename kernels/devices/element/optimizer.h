// Optimizer steps of one element, as torch.optim computes them.
#pragma once

#include "kernels/devices/element/math.h"

namespace memfathom::element {

template <typename T>
struct StepOptions {
  T learning_rate, beta1, beta2, eps, weight_decay, momentum;
  T correction1, correction2;  // 1 - beta1^step, 1 - beta2^step
  bool first_step;
};

template <typename T>
struct ElementState {
  T parameter, gradient;
  T state1, state2;
};

// state1 is the momentum buffer; it is ignored when momentum is 0.
template <typename T>
MEMFATHOM_HD void sgd_step(const StepOptions<T>& o, ElementState<T>& e) {
  T g = e.gradient + o.weight_decay * e.parameter;
  if (o.momentum != T(0)) {
    e.state1 = o.first_step ? g : o.momentum * e.state1 + g;
    g = e.state1;
  }
  e.parameter -= o.learning_rate * g;
}

// Adam and AdamW differ in where they apply weight decay: to the gradient or to the parameter.
template <typename T>
MEMFATHOM_HD void adam_step(const StepOptions<T>& o, bool decoupled_decay, ElementState<T>& e) {
  T g = e.gradient;
  if (decoupled_decay) {
    e.parameter *= T(1) - o.learning_rate * o.weight_decay;
  } else {
    g += o.weight_decay * e.parameter;
  }
  e.state1 += (g - e.state1) * (T(1) - o.beta1);
  e.state2 = o.beta2 * e.state2 + (T(1) - o.beta2) * g * g;
  const T denominator = math::sqrt(e.state2) / math::sqrt(o.correction2) + o.eps;
  e.parameter -= o.learning_rate / o.correction1 * e.state1 / denominator;
}

// beta2 is torch's alpha; state2 is the momentum buffer, ignored when momentum is 0.
template <typename T>
MEMFATHOM_HD void rmsprop_step(const StepOptions<T>& o, ElementState<T>& e) {
  const T g = e.gradient + o.weight_decay * e.parameter;
  e.state1 = o.beta2 * e.state1 + (T(1) - o.beta2) * g * g;
  T update = g / (math::sqrt(e.state1) + o.eps);
  if (o.momentum != T(0)) {
    e.state2 = o.momentum * e.state2 + update;
    update = e.state2;
  }
  e.parameter -= o.learning_rate * update;
}

template <typename T>
MEMFATHOM_HD void adagrad_step(const StepOptions<T>& o, ElementState<T>& e) {
  const T g = e.gradient + o.weight_decay * e.parameter;
  e.state1 += g * g;
  e.parameter -= o.learning_rate * g / (math::sqrt(e.state1) + o.eps);
}

}  // namespace memfathom::element
