// Math: the elementary functions in fp32 and fp64, under names that host and device code share.
#pragma once

#include <math.h>

#include "kernels/devices/element/hd.h"

namespace memfathom::element::math {

// The C names instead of std::, because nvcc has a device version of each.
MEMFATHOM_HD inline float exp(float x) { return ::expf(x); }
MEMFATHOM_HD inline double exp(double x) { return ::exp(x); }
MEMFATHOM_HD inline float expm1(float x) { return ::expm1f(x); }
MEMFATHOM_HD inline double expm1(double x) { return ::expm1(x); }
MEMFATHOM_HD inline float log(float x) { return ::logf(x); }
MEMFATHOM_HD inline double log(double x) { return ::log(x); }
MEMFATHOM_HD inline float log1p(float x) { return ::log1pf(x); }
MEMFATHOM_HD inline double log1p(double x) { return ::log1p(x); }
MEMFATHOM_HD inline float sqrt(float x) { return ::sqrtf(x); }
MEMFATHOM_HD inline double sqrt(double x) { return ::sqrt(x); }
MEMFATHOM_HD inline float pow(float x, float y) { return ::powf(x, y); }
MEMFATHOM_HD inline double pow(double x, double y) { return ::pow(x, y); }
MEMFATHOM_HD inline float sin(float x) { return ::sinf(x); }
MEMFATHOM_HD inline double sin(double x) { return ::sin(x); }
MEMFATHOM_HD inline float cos(float x) { return ::cosf(x); }
MEMFATHOM_HD inline double cos(double x) { return ::cos(x); }
MEMFATHOM_HD inline float tanh(float x) { return ::tanhf(x); }
MEMFATHOM_HD inline double tanh(double x) { return ::tanh(x); }
MEMFATHOM_HD inline float erf(float x) { return ::erff(x); }
MEMFATHOM_HD inline double erf(double x) { return ::erf(x); }
MEMFATHOM_HD inline float abs(float x) { return ::fabsf(x); }
MEMFATHOM_HD inline double abs(double x) { return ::fabs(x); }

template <typename T>
MEMFATHOM_HD bool is_nan(T x) {
  return x != x;  // NOLINT(misc-redundant-expression): nothing else differs from itself
}

// Propagates NaN from either operand, as PyTorch does.
template <typename T>
MEMFATHOM_HD T max(T a, T b) {
  return a > b || is_nan(a) ? a : b;
}
template <typename T>
MEMFATHOM_HD T min(T a, T b) {
  return a < b || is_nan(a) ? a : b;
}

template <typename T>
MEMFATHOM_HD T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

// log(1 + exp x) without overflow.
template <typename T>
MEMFATHOM_HD T softplus(T x) {
  return (x > T(0) ? x : T(0)) + log1p(exp(-abs(x)));
}

}  // namespace memfathom::element::math
