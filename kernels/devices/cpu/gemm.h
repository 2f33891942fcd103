// Gemm: matrix products through oneDNN's sgemm; 16-bit operands pass through fp32, complex ones
// through four products.
#pragma once

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

void run_gemm(const GemmCall& call);

// A row-major fp32 matrix, or the transpose of one, as BLAS wants it.
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
