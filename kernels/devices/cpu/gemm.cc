#include "kernels/devices/cpu/gemm.h"

#include <algorithm>

#include "kernels/devices/cpu/gather.h"
#include "kernels/devices/cpu/loops.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom::cpu {
namespace {

// One matrix of a batch as a rank-2 operand.
Operand matrix_of(const Operand& t, std::int64_t batch) {
  if (t.shape.rank() == 2) return t;
  char* data = static_cast<char*>(t.data) + batch * t.strides[0] * element::element_bytes(t.dtype);
  return {data, t.dtype, {t.shape[1], t.shape[2]}, {t.strides[1], t.strides[2]}};
}

// How BLAS can read the operand in place, if it can: fp32, one of the two strides 1, rows that do
// not overlap.
bool in_place(const Operand& t, Matrix& matrix) {
  if (t.dtype != DType::kFp32) return false;
  const std::int64_t rows = t.shape[0], columns = t.shape[1], down = t.strides[0],
                     across = t.strides[1];
  if ((across == 1 || columns == 1) && (down >= columns || rows == 1)) {
    matrix = {static_cast<float*>(t.data), rows == 1 ? columns : down, false};
    return true;
  }
  if ((down == 1 || rows == 1) && (across >= rows || columns == 1)) {
    matrix = {static_cast<float*>(t.data), columns == 1 ? rows : across, true};
    return true;
  }
  return false;
}

// An operand for BLAS: in place, or a dense fp32 copy.
class Input {
 public:
  explicit Input(const Operand& t) {
    if (in_place(t, matrix_)) return;
    const std::int64_t n = t.shape.elements();
    copy_ = scratch<float>(n);
    gather(element::whole(t), 0, n, copy_.get());
    matrix_ = {copy_.get(), t.shape[1], false};
  }
  const Matrix& matrix() const { return matrix_; }

 private:
  Matrix matrix_;
  std::unique_ptr<float[]> copy_;
};

Matrix flipped(Matrix matrix) {
  matrix.transposed = !matrix.transposed;
  return matrix;
}

// `out` is set to the bias first, and the product is added to it.
float put_bias(const GemmCall& call, const Operand& bias, const Operand& out) {
  if (!bias) return static_cast<float>(call.beta);
  ElementwiseCall start;
  start.out = out;
  if (call.beta == 0) {
    start.op = Elementwise::kCopy;
    start.a = bias;
  } else {
    start.op = Elementwise::kAdd;
    start.a = bias;
    start.b = out;
    start.scalars[0] = call.beta;
  }
  run_loops(start);
  return 1;
}

void multiply_floats(const GemmCall& call, const Operand& a, const Operand& b, const Operand& bias,
                     const Operand& out) {
  const std::int64_t m = out.shape[0], n = out.shape[1], k = a.shape[1];
  const Input left(a), right(b);
  const float alpha = static_cast<float>(call.alpha);
  Matrix target;
  if (in_place(out, target)) {
    const float beta = put_bias(call, bias, out);
    if (target.transposed) {  // out^T = b^T.a^T
      sgemm(n, m, k, alpha, flipped(right.matrix()), flipped(left.matrix()), beta, target.data,
            target.leading);
    } else {
      sgemm(m, n, k, alpha, left.matrix(), right.matrix(), beta, target.data, target.leading);
    }
    return;
  }
  const auto copy = scratch<float>(m * n);
  const Operand dense{copy.get(), DType::kFp32, {m, n}, {n, 1}};
  if (call.beta != 0) gather(element::whole(out), 0, m * n, copy.get());
  const float beta = put_bias(call, bias, dense);
  sgemm(m, n, k, alpha, left.matrix(), right.matrix(), beta, copy.get(), n);
  scatter(element::whole(out), 0, m * n, copy.get());
}

// Real and imaginary parts of a complex matrix as two dense fp32 matrices.
struct Parts {
  std::unique_ptr<float[]> re, im;

  explicit Parts(const Operand& t, bool conjugate = false)
      : re(scratch<float>(t.shape.elements())), im(scratch<float>(t.shape.elements())) {
    const element::StridedSpan lane = element::whole(t);
    const std::int64_t n = t.shape.elements();
    for (std::int64_t i = 0; i < n; ++i) {
      const auto value = lane.get<element::Complex>(i);
      re[static_cast<std::size_t>(i)] = value.re;
      im[static_cast<std::size_t>(i)] = conjugate ? -value.im : value.im;
    }
  }
};

void multiply_complex(const GemmCall& call, const Operand& a, const Operand& b,
                      const Operand& out) {
  const std::int64_t m = out.shape[0], n = out.shape[1], k = a.shape[1];
  const Parts left(a, call.conjugate_a), right(b, call.conjugate_b), sum(out);
  const float alpha = static_cast<float>(call.alpha), beta = static_cast<float>(call.beta);
  const auto times = [&](float factor, float* x, float* y, float keep, float* to) {
    sgemm(m, n, k, factor, {x, k, false}, {y, n, false}, keep, to, n);
  };
  times(alpha, left.re.get(), right.re.get(), beta, sum.re.get());
  times(-alpha, left.im.get(), right.im.get(), 1, sum.re.get());
  times(alpha, left.re.get(), right.im.get(), beta, sum.im.get());
  times(alpha, left.im.get(), right.re.get(), 1, sum.im.get());
  const element::StridedSpan lane = element::whole(out);
  for (std::int64_t i = 0; i < m * n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    lane.set<element::Complex>(i, {sum.re[at], sum.im[at]});
  }
}

}  // namespace

void run_gemm(const GemmCall& call) {
  const bool floats = call.out.dtype == DType::kFp32 || is_16bit_float(call.out.dtype);
  const bool complex = is_complex(call.out.dtype) && is_complex(call.a.dtype) &&
                       is_complex(call.b.dtype) && !call.bias;
  const std::int64_t m = call.out.shape[-2], n = call.out.shape[-1], k = call.a.shape[-1];
  if (m == 0 || n == 0) return;
  // fp64 is the reference's own type; sgemm does not support k = 0.
  if ((!floats && !complex) || k == 0 || call.a.dtype == DType::kFp64) return run_reference(call);
  const std::int64_t batches = call.out.shape.rank() == 3 ? call.out.shape[0] : 1;
  const Operand bias = call.bias ? element::broadcast_to(call.bias, call.out.shape) : call.bias;
  for (std::int64_t i = 0; i < batches; ++i) {
    const Operand a = matrix_of(call.a, i), b = matrix_of(call.b, i), out = matrix_of(call.out, i);
    if (complex) {
      multiply_complex(call, a, b, out);
    } else {
      multiply_floats(call, a, b, call.bias ? matrix_of(bias, i) : bias, out);
    }
  }
}

}  // namespace memfathom::cpu
