// Half: fp16 and bf16 as bit patterns, converted to and from fp32 with rounding to nearest, ties to
// even.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/devices/element/hd.h"

namespace memfathom::element {

MEMFATHOM_HD inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

MEMFATHOM_HD inline float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

MEMFATHOM_HD inline float bf16_to_float(uint16_t bits) {
  return float_of_bits(uint32_t(bits) << 16);
}

MEMFATHOM_HD inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = bits_of_float(value);
  // A NaN with its payload in the low half would round to infinity.
  if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t(bits >> 16 | 0x40u);
  const uint32_t odd = bits >> 16 & 1u;
  return uint16_t((bits + 0x7fffu + odd) >> 16);
}

MEMFATHOM_HD inline float fp16_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000u) << 16;
  const uint32_t exponent = bits >> 10 & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return float_of_bits(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return float_of_bits(sign | (exponent + 112u) << 23 | fraction << 13);
  // Subnormal: fraction * 2^-24, exact in fp32.
  const float magnitude = float(fraction) * 5.9604644775390625e-8f;
  return sign ? -magnitude : magnitude;
}

MEMFATHOM_HD inline uint16_t float_to_fp16(float value) {
  const uint32_t bits = bits_of_float(value);
  const uint16_t sign = uint16_t(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return uint16_t(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
  if (magnitude >= 0x477ff000u)
    return uint16_t(sign | 0x7c00u);  // 65520 and above round to infinity
  if (magnitude >= 0x38800000u) {     // normal: 2^-14 and above
    const uint32_t odd = magnitude >> 13 & 1u;
    return uint16_t(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
  }
  if (magnitude < 0x33000000u) return sign;  // below 2^-25: nearest is zero
  // Subnormal: shift the 24-bit significand down to units of 2^-24.
  const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t shift = 126u - (magnitude >> 23);
  const uint32_t result = significand >> shift;
  const uint32_t rest = significand & ((1u << shift) - 1u);
  const uint32_t half = 1u << (shift - 1u);
  return uint16_t(sign | (result + (rest > half || (rest == half && (result & 1u)) ? 1u : 0u)));
}

}  // namespace memfathom::element
