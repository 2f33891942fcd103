#include "kernels/devices/cuda/gemm_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/error.h"

namespace memfathom::cuda {
namespace {

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  bool transposed = false;  // rows, not columns, are contiguous
  std::int64_t leading = 1;
};

[[noreturn]] void refuse(const char* name, const Operand& operand, const char* why) {
  throw Error(ErrorKind::kInternal,
              fmt::format("gemm: {} {} with strides {} {}", name, to_string(operand.shape),
                          to_string(operand.strides), why));
}

// The stride of a dimension of extent 1 is arbitrary, but cuBLAS requires a leading dimension that
// could hold the matrix.
std::optional<Matrix> dense_matrix(const Operand& operand) {
  const std::int64_t rows = operand.shape[-2];
  const std::int64_t columns = operand.shape[-1];
  const std::int64_t row_stride = operand.strides[-2];
  const std::int64_t column_stride = operand.strides[-1];
  if ((column_stride == 1 || columns == 1) && (rows == 1 || row_stride >= columns)) {
    return Matrix{rows, columns, false,
                  rows == 1 ? std::max<std::int64_t>(columns, 1) : row_stride};
  }
  if ((row_stride == 1 || rows == 1) && (columns == 1 || column_stride >= rows)) {
    return Matrix{rows, columns, true,
                  columns == 1 ? std::max<std::int64_t>(rows, 1) : column_stride};
  }
  return std::nullopt;
}

bool is_matrix(const Operand& operand) {
  return operand.shape.rank() == 2 || operand.shape.rank() == 3;
}

Matrix matrix_of(const char* name, const Operand& operand) {
  if (!is_matrix(operand)) refuse(name, operand, "must be a matrix or a batch of them");
  const std::optional<Matrix> matrix = dense_matrix(operand);
  if (!matrix) refuse(name, operand, "is neither plain nor transposed");
  return *matrix;
}

GemmMatrix operand_of(const Operand& operand, const Matrix& matrix, bool flipped,
                      bool conjugated = false) {
  const cublasOperation_t turned = conjugated ? CUBLAS_OP_C : CUBLAS_OP_T;
  return {operand.data, matrix.transposed != flipped ? turned : CUBLAS_OP_N, matrix.leading,
          operand.shape.rank() == 3 ? operand.strides[0] : 0};
}

}  // namespace

bool is_blas_compatible(const GemmCall& call) {
  for (const Operand* operand : {&call.a, &call.b, &call.out}) {
    if (is_matrix(*operand) && !dense_matrix(*operand)) return false;
  }
  const bool flipped = is_matrix(call.out) && dense_matrix(call.out)->transposed;
  const auto untransposed = [&](const Operand& operand) {
    return is_matrix(operand) && dense_matrix(operand)->transposed == flipped;
  };
  return !(call.conjugate_a && untransposed(call.a)) && !(call.conjugate_b && untransposed(call.b));
}

GemmLayout layout_of(const GemmCall& call) {
  const Matrix a = matrix_of("a", call.a);
  const Matrix b = matrix_of("b", call.b);
  const Matrix out = matrix_of("out", call.out);
  if (a.rows != out.rows || b.columns != out.columns || a.columns != b.rows) {
    refuse("out", call.out, "does not have the shape of a.b");
  }
  const std::int64_t batch = call.out.shape.rank() == 3 ? call.out.shape[0] : 1;
  for (const Operand* operand : {&call.a, &call.b}) {
    if (operand->shape.rank() != call.out.shape.rank() ||
        (batch != 1 && operand->shape[0] != batch)) {
      refuse("out", call.out, "has another batch than its operands");
    }
  }
  for (const std::int64_t extent :
       {out.rows, out.columns, a.columns, batch, a.leading, b.leading, out.leading}) {
    if (extent > std::numeric_limits<int>::max())
      refuse("out", call.out, "is larger than cuBLAS's 32-bit extents");
  }
  GemmLayout layout{out.columns,
                    out.rows,
                    a.columns,
                    batch,
                    operand_of(call.b, b, false, call.conjugate_b),
                    operand_of(call.a, a, false, call.conjugate_a),
                    operand_of(call.out, out, false),
                    true};
  if (out.transposed) {
    // The transpose of out is plain: computes it from the transposed operands in reverse order.
    layout = {out.rows,
              out.columns,
              a.columns,
              batch,
              operand_of(call.a, a, true, call.conjugate_a),
              operand_of(call.b, b, true, call.conjugate_b),
              operand_of(call.out, out, true),
              false};
  }
  return layout;
}

}  // namespace memfathom::cuda
