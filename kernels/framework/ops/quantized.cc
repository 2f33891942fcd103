#include "kernels/framework/ops/quantized.h"

#include "core/error.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/autocast.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// Dequantizes the matrix to `dtype`; quantized scales are first widened to fp32. Weights quantized
// from fp16 are dequantized to fp16 and then cast.
Tensor dequantized(Session& session, const Shape& shape, const Shape& scales, bool nested,
                   DType dtype) {
  Tensor widened;
  if (nested) widened = session.empty(scales, DType::kFp32);
  if (!session.policy().bitsandbytes_quantizes_from_fp16) return session.empty(shape, dtype);
  const Tensor half = session.empty(shape, DType::kFp16);
  widened.reset();
  return to_dtype(half, dtype);
}

// A kernel that reads packed weights; for fp8 weights the input is quantized to 8 bits too.
Tensor direct_product(const Tensor& x, const QuantizedWeight& weight, const Tensor& bias) {
  Session& session = x.session();
  Tensor narrow;
  if (weight.eight_bit) narrow = session.empty(x.shape(), DType::kInt8);
  Shape shape = x.shape();
  shape[-1] = weight.shape[0];
  const Tensor out = session.empty(shape, x.dtype());
  narrow.reset();
  return bias ? add(out, bias) : out;
}

// The input in int8, scaled by row and, in older versions, also by column.
struct Narrow {
  Tensor rows, columns;
};

// A mask locates columns with outliers; the tensors made from those columns depend on the data and
// are small.
Narrow narrowed(const Tensor& x) {
  Session& session = x.session();
  const bool older = session.policy().bitsandbytes_tiles_int8;
  const Tensor half = to_dtype(x, DType::kFp16);
  Narrow made;
  if (older) made.columns = session.empty(x.shape(), DType::kInt8);
  made.rows = session.empty(x.shape(), DType::kInt8);
  if (older) return made;
  const Tensor magnitude = session.empty(x.shape(), DType::kFp16);
  const Tensor outliers = session.empty(x.shape(), DType::kBool);
  return made;
}

// Sums in int32, then fp16, then the input's type. Older versions convert the input to a tiled
// layout and return a copy.
Tensor int8_product(const Tensor& x, const Shape& out_shape) {
  Session& session = x.session();
  const bool older = session.policy().bitsandbytes_tiles_int8;
  Tensor tiles;
  if (older) tiles = session.empty(x.shape(), DType::kInt8);
  const Tensor sums = session.empty(out_shape, DType::kInt32);
  const Tensor out = to_dtype(session.empty(out_shape, DType::kFp16), x.dtype());
  return older ? session.empty(out_shape, x.dtype()) : out;
}

// The matrix in the input's type; older versions convert tiles to rows first.
Tensor widened_int8(Session& session, const Shape& shape, DType dtype) {
  Tensor rows;
  if (session.policy().bitsandbytes_tiles_int8) rows = session.empty(shape, DType::kInt8);
  return session.empty(shape, dtype);
}

// LLM.int8() saves the input for backward although it is not needed; older versions also save its
// int8 columns.
Tensor linear_int8(const Tensor& x, const QuantizedWeight& weight) {
  Session& session = x.session();
  Shape out_shape = x.shape();
  out_shape[-1] = weight.shape[0];
  notify_before_use(weight.packed);
  Recording tape(session, "MatMul8bitLt", {&x});
  tape.save(x);
  Tensor out;
  {
    const NoGrad no_grad(session);
    const Narrow narrow = narrowed(x.detach());
    out = int8_product(x.detach(), out_shape);
    if (narrow.columns) tape.save(narrow.columns);
  }
  tape.finish(out, [packed = weight.packed, shape = weight.shape, dtype = x.dtype()](Backward& b) {
    notify_before_use(packed);
    Narrow narrow;
    if (b.session().policy().bitsandbytes_tiles_int8) narrow = narrowed(b.gradient());
    const Tensor full = widened_int8(b.session(), shape, dtype);
    b.give(0, matmul(b.gradient(), full));
  });
  return out;
}

}  // namespace

Tensor linear_quantized(const Tensor& input, const QuantizedWeight& weight, const Tensor& bias) {
  Session& session = input.session();
  if (session.computes()) {
    throw Error(
        ErrorKind::kInput,
        "quantised weights are kept as accounts only; measure the job without quantization");
  }
  if (weight.eight_bit && !weight.direct) return linear_int8(input, weight);
  const Tensor x = autocast_to_lower(input);
  notify_before_use(weight.packed);
  Recording tape(session, "MatMul4Bit", {&x});
  if (weight.direct && !tape.wanted()) return direct_product(x, weight, bias);
  if (session.policy().bitsandbytes_keeps_input) tape.save(x);
  Tensor out;
  {
    const NoGrad no_grad(session);
    const Tensor full = dequantized(session, weight.shape, weight.scales.shape(),
                                    weight.second_scales.defined(), x.dtype());
    out = linear(x.detach(), full, bias ? bias.detach() : bias);
  }
  const bool nested = weight.second_scales.defined();
  tape.finish(out, [packed = weight.packed, shape = weight.shape, scales = weight.scales.shape(),
                    nested](Backward& b) {
    notify_before_use(packed);
    const Tensor full = dequantized(b.session(), shape, scales, nested, b.gradient().dtype());
    b.give(0, matmul(b.gradient(), full));
  });
  return out;
}

}  // namespace memfathom
