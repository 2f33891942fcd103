#include <complex>

#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {
namespace {

using element::Complex;

template <typename T>
T read(const Operand& t, std::int64_t index, bool conjugate = false) {
  if constexpr (std::is_same_v<T, double>) {
    return element::load<double>(t.data, t.dtype, index);
  } else {
    const Complex value = element::load<Complex>(t.data, t.dtype, index);
    return {static_cast<double>(value.re), static_cast<double>(conjugate ? -value.im : value.im)};
  }
}

template <typename T>
void write(const Operand& t, std::int64_t index, T value) {
  if constexpr (std::is_same_v<T, double>) {
    element::store<double>(t.data, t.dtype, index, value);
  } else {
    element::store<Complex>(t.data, t.dtype, index,
                            {static_cast<float>(value.real()), static_cast<float>(value.imag())});
  }
}

std::int64_t at(const Operand& t, std::int64_t batch, std::int64_t row, std::int64_t column) {
  const std::int64_t offset = t.shape.rank() == 3 ? batch * t.strides[0] : 0;
  return offset + row * t.strides[-2] + column * t.strides[-1];
}

template <typename T>
void multiply(const GemmCall& call) {
  const std::int64_t batches = call.out.shape.rank() == 3 ? call.out.shape[0] : 1;
  const std::int64_t m = call.out.shape[-2], n = call.out.shape[-1], k = call.a.shape[-1];
  const Operand bias = call.bias ? element::broadcast_to(call.bias, call.out.shape) : call.bias;
  for (std::int64_t b = 0; b < batches; ++b) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        T sum{};
        for (std::int64_t l = 0; l < k; ++l) {
          sum += read<T>(call.a, at(call.a, b, i, l), call.conjugate_a) *
                 read<T>(call.b, at(call.b, b, l, j), call.conjugate_b);
        }
        T value = call.alpha * sum;
        if (call.bias) value += read<T>(bias, at(bias, b, i, j));
        if (call.beta != 0) value += call.beta * read<T>(call.out, at(call.out, b, i, j));
        write<T>(call.out, at(call.out, b, i, j), value);
      }
    }
  }
}

}  // namespace

void run_reference(const GemmCall& call) {
  if (is_complex(call.out.dtype)) {
    multiply<std::complex<double>>(call);
  } else {
    multiply<double>(call);
  }
}

}  // namespace memfathom
