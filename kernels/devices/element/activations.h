// Activations: element functions and their derivatives; in a backward function a is the gradient
// and b the saved tensor.
#pragma once

#include "kernels/devices/element/arithmetic.h"

namespace memfathom::element {

MEMFATHOM_ELEMENT(Tanh, return math::tanh(a););
MEMFATHOM_ELEMENT(TanhBackward, return a * (T(1) - b * b););
MEMFATHOM_ELEMENT(Sigmoid, return math::sigmoid(a););
MEMFATHOM_ELEMENT(SigmoidBackward, return a * b * (T(1) - b););
MEMFATHOM_ELEMENT(Relu, return math::max(a, T(0)););
MEMFATHOM_ELEMENT(ThresholdBackward, return b > T(0) ? a : T(0););

// x * P(N(0, 1) <= x)
MEMFATHOM_ELEMENT(Gelu, return T(0.5) * a * (T(1) + math::erf(a * T(0.70710678118654752440))););
MEMFATHOM_ELEMENT(GeluBackward, {
  const T probability = T(0.5) * (T(1) + math::erf(b * T(0.70710678118654752440)));
  const T density = T(0.39894228040143267794) * math::exp(T(-0.5) * b * b);
  return a * (probability + b * density);
});

template <typename T>
MEMFATHOM_HD T gelu_tanh_argument(T x) {
  return T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
}
MEMFATHOM_ELEMENT(GeluTanh, return T(0.5) * a * (T(1) + math::tanh(gelu_tanh_argument(a))););
MEMFATHOM_ELEMENT(GeluTanhBackward, {
  const T t = math::tanh(gelu_tanh_argument(b));
  const T slope = T(0.79788456080286535588) * (T(1) + T(3 * 0.044715) * b * b);
  return a * (T(0.5) * (T(1) + t) + T(0.5) * b * (T(1) - t * t) * slope);
});

MEMFATHOM_ELEMENT(Silu, return a * math::sigmoid(a););
MEMFATHOM_ELEMENT(SiluBackward, {
  const T y = math::sigmoid(b);
  return a * y * (T(1) + b * (T(1) - y));
});

MEMFATHOM_ELEMENT(Mish, return a * math::tanh(math::softplus(a)););
MEMFATHOM_ELEMENT(MishBackward, {
  const T t = math::tanh(math::softplus(b));
  return a * (t + b * math::sigmoid(b) * (T(1) - t * t));
});

MEMFATHOM_ELEMENT(LeakyRelu, return a > T(0) ? a : s.s0 * a;);
MEMFATHOM_ELEMENT(LeakyReluBackward, return b > T(0) ? a : s.s0 * a;);
MEMFATHOM_ELEMENT(Elu, return s.s1 * (a > T(0) ? a : s.s0 * math::expm1(a)););
// b is the input, or with s2 the result, which is what an operation in place keeps.
MEMFATHOM_ELEMENT(EluBackward, {
  const T slope = s.s2 > T(0) ? b / s.s1 + s.s0 : s.s0 * math::exp(b);
  return a * s.s1 * (b > T(0) ? T(1) : slope);
});
MEMFATHOM_ELEMENT(Softplus, return s.s0 * a > s.s1 ? a : math::log1p(math::exp(s.s0 * a)) / s.s0;);
MEMFATHOM_ELEMENT(SoftplusBackward, return s.s0 * b > s.s1 ? a : a * math::sigmoid(s.s0 * b););
MEMFATHOM_ELEMENT(Hardtanh, return math::min(math::max(a, s.s0), s.s1););
MEMFATHOM_ELEMENT(HardtanhBackward, return b > s.s0 && b < s.s1 ? a : T(0););
MEMFATHOM_ELEMENT(Hardswish, return a * math::min(math::max(a + T(3), T(0)), T(6)) / T(6););
MEMFATHOM_ELEMENT(HardswishBackward, {
  if (b <= T(-3)) return T(0);
  return b < T(3) ? a * (b / T(3) + T(0.5)) : a;
});
MEMFATHOM_ELEMENT(Prelu, return a > T(0) ? a : b * a;);
MEMFATHOM_ELEMENT(PreluBackwardInput, return b > T(0) ? a : c * a;);
MEMFATHOM_ELEMENT(PreluBackwardWeight, return b > T(0) ? T(0) : a * b;);

}  // namespace memfathom::element
