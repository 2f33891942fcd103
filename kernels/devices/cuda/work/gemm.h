// Gemm work: one element of a product whose operands cuBLAS cannot read because no dimension of a
// matrix is dense. Spectral layers have such weights: the modes are innermost.
#pragma once

#include "kernels/devices/cuda/work/team.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cuda {

struct StridedMatrix {
  void* data;
  DType dtype;
  int64_t batch, row, column;  // strides

  template <typename T>
  MEMFATHOM_HD T get(int64_t b, int64_t r, int64_t c) const {
    return element::load<T>(data, dtype, b * batch + r * row + c * column);
  }
  template <typename T>
  MEMFATHOM_HD void set(int64_t b, int64_t r, int64_t c, T value) const {
    element::store<T>(data, dtype, b * batch + r * row + c * column, value);
  }
};

template <typename T>
struct GemmWork {
  StridedMatrix out, a, b, bias;
  int64_t rows, columns, depth;
  T alpha, beta;
  bool reads_out;  // beta is not 0; otherwise the old output is undefined
  bool conjugate_a, conjugate_b;

  MEMFATHOM_HD static T conjugate_if(T value, bool conjugated) {
    return conjugated ? element::conjugate(value) : value;
  }

  MEMFATHOM_HD void operator()(int64_t i) const {
    const int64_t c = i % columns, r = i / columns % rows, batch = i / columns / rows;
    T sum{};
    for (int64_t k = 0; k < depth; ++k) {
      sum = sum + conjugate_if(a.template get<T>(batch, r, k), conjugate_a) *
                      conjugate_if(b.template get<T>(batch, k, c), conjugate_b);
    }
    sum = alpha * sum;
    if (bias.data != nullptr) sum = sum + bias.template get<T>(0, 0, c);
    if (reads_out) sum = sum + beta * out.template get<T>(batch, r, c);
    out.set(batch, r, c, sum);
  }
};

inline StridedMatrix strided(const Operand& operand) {
  const int rank = operand.shape.rank();
  return {operand.data, operand.dtype, rank > 2 ? operand.strides[0] : 0,
          rank > 1 ? operand.strides[-2] : 0, rank > 0 ? operand.strides[-1] : 0};
}

template <typename Executor>
void submit(Executor& executor, const GemmCall& call) {
  const auto run = [&]<typename T>(T) {
    executor.each(
        call.out.shape.elements(),
        GemmWork<T>{strided(call.out), strided(call.a), strided(call.b), strided(call.bias),
                    call.out.shape[-2], call.out.shape[-1], call.a.shape[-1], T(call.alpha),
                    T(call.beta), call.beta != 0, call.conjugate_a, call.conjugate_b});
  };
  if (is_complex(call.out.dtype)) return run(element::Complex{});
  in_double(call.out.dtype) ? run(0.0) : run(0.0F);
}

}  // namespace memfathom::cuda
