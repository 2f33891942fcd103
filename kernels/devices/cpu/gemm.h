// Gemm: matrix products on one sgemm (of libraries/ or portable/); 16-bit operands are converted to
// fp32, complex ones use four products.
#pragma once

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

void run_gemm(const GemmCall& call);

// A row-major fp32 matrix or its transpose, in BLAS's terms.
struct Matrix {
  float* data = nullptr;
  std::int64_t leading = 0;
  bool transposed = false;
};

// out [m, n] = alpha * a [m, k] . b [k, n] + beta * out, out row-major with the given leading
// dimension.
void sgemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const Matrix& a,
           const Matrix& b, float beta, float* out, std::int64_t leading);

}  // namespace memfathom::cpu
