// load and store: one element of any type, converted to and from the arithmetic type.
#pragma once

#include <stdint.h>

#include "core/dtype.h"
#include "kernels/devices/element/complex.h"
#include "kernels/devices/element/half.h"
#include "kernels/devices/element/hd.h"

namespace memfathom::element {

MEMFATHOM_HD inline int64_t element_bytes(DType dtype) {
  switch (dtype) {
    case DType::kFp64:
    case DType::kInt64:
    case DType::kComplex64: return 8;
    case DType::kFp32:
    case DType::kInt32: return 4;
    case DType::kFp16:
    case DType::kBf16: return 2;
    case DType::kInt8:
    case DType::kUint8:
    case DType::kBool:
    case DType::kNf4: break;
  }
  return 1;
}

// T is float, double or int64_t. A complex element gives its real part.
template <typename T>
MEMFATHOM_HD T load(const void* data, DType dtype, int64_t index) {
  switch (dtype) {
    case DType::kFp64: return T(static_cast<const double*>(data)[index]);
    case DType::kFp32: return T(static_cast<const float*>(data)[index]);
    case DType::kFp16: return T(fp16_to_float(static_cast<const uint16_t*>(data)[index]));
    case DType::kBf16: return T(bf16_to_float(static_cast<const uint16_t*>(data)[index]));
    case DType::kInt64: return T(static_cast<const int64_t*>(data)[index]);
    case DType::kInt32: return T(static_cast<const int32_t*>(data)[index]);
    case DType::kInt8: return T(static_cast<const int8_t*>(data)[index]);
    case DType::kUint8: return T(static_cast<const uint8_t*>(data)[index]);
    case DType::kBool: return T(static_cast<const uint8_t*>(data)[index] != 0);
    case DType::kComplex64: return T(static_cast<const Complex*>(data)[index].re);
    case DType::kNf4: break;  // packed storage: no operation reads single elements of it
  }
  return T(0);
}

template <>
MEMFATHOM_HD inline Complex load<Complex>(const void* data, DType dtype, int64_t index) {
  if (dtype == DType::kComplex64) return static_cast<const Complex*>(data)[index];
  return Complex(load<float>(data, dtype, index));
}

template <typename T>
MEMFATHOM_HD void store(void* data, DType dtype, int64_t index, T value) {
  switch (dtype) {
    case DType::kFp64: static_cast<double*>(data)[index] = double(value); return;
    case DType::kFp32: static_cast<float*>(data)[index] = float(value); return;
    case DType::kFp16: static_cast<uint16_t*>(data)[index] = float_to_fp16(float(value)); return;
    case DType::kBf16: static_cast<uint16_t*>(data)[index] = float_to_bf16(float(value)); return;
    case DType::kInt64: static_cast<int64_t*>(data)[index] = int64_t(value); return;
    case DType::kInt32: static_cast<int32_t*>(data)[index] = int32_t(value); return;
    case DType::kInt8: static_cast<int8_t*>(data)[index] = int8_t(value); return;
    case DType::kUint8: static_cast<uint8_t*>(data)[index] = uint8_t(value); return;
    case DType::kBool: static_cast<uint8_t*>(data)[index] = value != T(0) ? 1 : 0; return;
    case DType::kComplex64: static_cast<Complex*>(data)[index] = Complex(float(value)); return;
    case DType::kNf4: return;
  }
}

template <>
MEMFATHOM_HD inline void store<Complex>(void* data, DType dtype, int64_t index, Complex value) {
  if (dtype == DType::kComplex64) {
    static_cast<Complex*>(data)[index] = value;
  } else {
    store<float>(data, dtype, index, value.re);
  }
}

}  // namespace memfathom::element
