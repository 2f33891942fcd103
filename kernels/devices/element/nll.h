// NLL: the negative log likelihood of one position, and the gradient of one position.
#pragma once

#include "kernels/devices/element/strided_span.h"

namespace memfathom::element {

// `classes` is the span of log-probabilities of one position. Out-of-range targets contribute
// nothing, like ignore_index: the caller checks targets where it can (a device cannot throw).
MEMFATHOM_HD inline bool nll_counts(int64_t target, int64_t classes, int64_t ignore_index) {
  return target != ignore_index && target >= 0 && target < classes;
}

template <typename T>
MEMFATHOM_HD T nll_loss(const StridedSpan& classes, int64_t target, int64_t ignore_index) {
  return nll_counts(target, classes.size(), ignore_index) ? -classes.get<T>(target) : T(0);
}

// Adds to one element of a span or of a device's equivalent.
template <typename T, typename Row>
MEMFATHOM_HD void nll_backward(const Row& gradient, int64_t target, int64_t ignore_index,
                               T grad_loss, T total_weight) {
  if (nll_counts(target, gradient.size(), ignore_index))
    gradient.template set<T>(target, gradient.template get<T>(target) - grad_loss / total_weight);
}

}  // namespace memfathom::element
