#include "kernels/ops/quantized.h"

#include "core/error.h"
#include "kernels/ops/arithmetic.h"
#include "kernels/ops/autocast.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/views.h"
#include "kernels/tensor/recording.h"

namespace memfathom {
namespace {

// The matrix in `dtype`; scales that are quantised themselves are widened to fp32 first.
Tensor dequantized(Session& session, const Shape& shape, const Shape& scales, bool nested,
                   DType dtype) {
  Tensor widened;
  if (nested) widened = session.empty(scales, DType::kFp32);
  return session.empty(shape, dtype);
}

// By a kernel that reads packed weights; fp8 ones want the input in 8 bits too.
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

}  // namespace

Tensor linear_quantized(const Tensor& input, const QuantizedWeight& weight, const Tensor& bias) {
  Session& session = input.session();
  if (session.computes()) {
    throw Error(
        ErrorKind::kInput,
        "quantised weights are kept as accounts only; measure the job without quantization");
  }
  const Tensor x = autocast_to_lower(input);
  announce_use(weight.packed);
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
    announce_use(packed);
    const Tensor full = dequantized(b.session(), shape, scales, nested, b.gradient().dtype());
    b.give(0, matmul(b.gradient(), full));
  });
  return out;
}

}  // namespace memfathom
