// GemmLayout: a row-major matrix product, with operands transposed by strides, in cuBLAS's
// column-major terms.
#pragma once

#include <cublas_v2.h>

#include <cstdint>

#include "kernels/framework/device/calls.h"

namespace memfathom::cuda {

struct GemmMatrix {
  void* data = nullptr;
  cublasOperation_t operation = CUBLAS_OP_N;
  std::int64_t leading = 1;       // elements between columns
  std::int64_t batch_stride = 0;  // 0 repeats the matrix
};

// cuBLAS computes c = a.b in column-major order: c has m rows and n columns. A row-major matrix is
// the column-major matrix of its transpose, so the call's operands are swapped here.
struct GemmLayout {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  GemmMatrix a, b, c;
  // The call's bias runs along c's rows, so that cuBLASLt can add it; otherwise it runs along the
  // columns.
  bool bias_along_rows = true;
};

// Whether cuBLAS can read every operand in place: rows or columns dense in every batch, and
// conjugated only if transposed.
bool is_blas_compatible(const GemmCall& call);

// Throws Error(kInternal) if shapes are inconsistent or an operand is neither plain nor transposed.
GemmLayout layout_of(const GemmCall& call);

}  // namespace memfathom::cuda
