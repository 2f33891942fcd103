// Losses: element functions of the point-wise losses; in a backward function a is the gradient, b
// the prediction, c the target and s0 the factor of the reduction (1 / elements for a mean).
#pragma once

#include "kernels/devices/element/arithmetic.h"

namespace memfathom::element {

MEMFATHOM_ELEMENT(MseBackward, return a * T(2) * (b - c) * s.s0;);
MEMFATHOM_ELEMENT(SquaredDifference, return (a - b) * (a - b););
MEMFATHOM_ELEMENT(AbsDifference, return math::abs(a - b););
MEMFATHOM_ELEMENT(Abs, return math::abs(a););
MEMFATHOM_ELEMENT(Sign, return a > T(0) ? T(1) : a < T(0) ? T(-1) : T(0););
MEMFATHOM_ELEMENT(L1Backward, {
  const T difference = b - c;
  return difference > T(0) ? a * s.s0 : difference < T(0) ? -a * s.s0 : T(0);
});
MEMFATHOM_ELEMENT(SmoothL1, {
  const T distance = math::abs(a - b);
  return distance < s.s0 ? T(0.5) * distance * distance / s.s0 : distance - T(0.5) * s.s0;
});
MEMFATHOM_ELEMENT(SmoothL1Backward, {
  const T difference = b - c;
  if (difference <= -s.s1) return -a * s.s0;
  if (difference >= s.s1) return a * s.s0;
  return a * s.s0 * difference / s.s1;
});
MEMFATHOM_ELEMENT(BceWithLogits, return (T(1) - b) * a + math::softplus(-a););
MEMFATHOM_ELEMENT(BceWithLogitsBackward, return a * (math::sigmoid(b) - c) * s.s0;);
MEMFATHOM_ELEMENT(Bce, return (b - T(1)) * math::max(math::log1p(-a), T(-100)) -
                              b * math::max(math::log(a), T(-100)););
MEMFATHOM_ELEMENT(BceBackward, return a * (b - c) / math::max((T(1) - b) * b, T(1e-12)) * s.s0;);

}  // namespace memfathom::element
