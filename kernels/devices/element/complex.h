// Complex: two fp32 numbers, laid out as PyTorch's complex64, cuComplex and fftwf_complex.
#pragma once

#include "kernels/devices/element/hd.h"

namespace memfathom::element {

struct Complex {
  float re = 0;
  float im = 0;

  Complex() = default;
  MEMFATHOM_HD Complex(float real, float imaginary) : re(real), im(imaginary) {}
  MEMFATHOM_HD explicit Complex(float real) : re(real) {}
  MEMFATHOM_HD explicit Complex(double real) : re(float(real)) {}
};

MEMFATHOM_HD inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
MEMFATHOM_HD inline Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
MEMFATHOM_HD inline Complex conjugate(Complex a) { return {a.re, -a.im}; }
MEMFATHOM_HD inline float conjugate(float a) { return a; }
MEMFATHOM_HD inline double conjugate(double a) { return a; }

}  // namespace memfathom::element
