// Arithmetic: the element functions other than activations and losses, defined in
// kernels/framework/device/calls.h.
#pragma once

#include "kernels/devices/element/complex.h"
#include "kernels/devices/element/math.h"

namespace memfathom::element {

// The scalars of an element-wise call, in the arithmetic type.
template <typename T>
struct Scalars {
  T s0, s1, s2, s3;
};

// Defines a stateless functor T(a, b, c, scalars) for host and device; most use only some of their
// operands.
#define MEMFATHOM_ELEMENT(Name, ...)                                                            \
  struct Name {                                                                                 \
    template <typename T>                                                                       \
    MEMFATHOM_HD T operator()([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c, \
                              [[maybe_unused]] const Scalars<T>& s) const {                     \
      __VA_ARGS__                                                                               \
    }                                                                                           \
  }

MEMFATHOM_ELEMENT(Fill, return s.s0;);
MEMFATHOM_ELEMENT(Copy, return a;);
MEMFATHOM_ELEMENT(Add, return a + s.s0 * b;);
MEMFATHOM_ELEMENT(AddScalar, return a + s.s0;);
MEMFATHOM_ELEMENT(Mul, return a * b;);
MEMFATHOM_ELEMENT(MulConjugate, return a * conjugate(b););
MEMFATHOM_ELEMENT(MulScalar, return a * s.s0;);
MEMFATHOM_ELEMENT(Div, return a / b;);
MEMFATHOM_ELEMENT(RealOverScalar, return a / s.s0;);
MEMFATHOM_ELEMENT(Neg, return -a;);
MEMFATHOM_ELEMENT(Pow, return s.s0 == T(2) ? a * a : math::pow(a, s.s0););
MEMFATHOM_ELEMENT(PowBackward, {
  if (s.s0 == T(0)) return T(0);
  return a * s.s0 * (s.s0 == T(2) ? b : math::pow(b, s.s0 - T(1)));
});
MEMFATHOM_ELEMENT(Exp, return math::exp(a););
MEMFATHOM_ELEMENT(Log, return math::log(a););
MEMFATHOM_ELEMENT(Sqrt, return math::sqrt(a););
MEMFATHOM_ELEMENT(Rsqrt, return T(1) / math::sqrt(a););
MEMFATHOM_ELEMENT(RsqrtBackward, return T(-0.5) * a * b * b * b;);
MEMFATHOM_ELEMENT(Sin, return math::sin(a););
MEMFATHOM_ELEMENT(Cos, return math::cos(a););
MEMFATHOM_ELEMENT(MaskedScale, return a * b * s.s0;);
MEMFATHOM_ELEMENT(Where, return a != T(0) ? b : c;);
MEMFATHOM_ELEMENT(NotEqualScalar, return a != s.s0 ? T(1) : T(0););

}  // namespace memfathom::element
