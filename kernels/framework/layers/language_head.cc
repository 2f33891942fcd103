#include "kernels/framework/layers/language_head.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/broadcast.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// The number of chunks that makes a chunk's logits about as large as the hidden states.
std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t width, std::int64_t vocabulary) {
  const std::int64_t factor = (vocabulary + width - 1) / width;
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>((rows + factor - 1) / factor)));
}

void in_place(const Tensor& x, Elementwise op, double scalar = 0) {
  if (x.session().computes())
    x.session().device().run(ElementwiseCall{op, x.operand(), x.operand(), {}, {}, {scalar}});
}

void scale_in_place(const Tensor& x, const Tensor& factor) {
  if (!x.session().computes()) return;
  x.session().device().run(ElementwiseCall{
      Elementwise::kMul, x.operand(), x.operand(), broadcast_operand(factor, x.shape()), {}, {}});
}

// Overwrites the logits with their gradient: softmax minus one at the target, over all rows. The
// chunk's share of the mean loss goes into the first of its losses.
void loss_and_gradient(const Tensor& logits, const Tensor& targets, const Tensor& losses,
                       const Tensor& counted, double all_rows) {
  if (!logits.session().computes()) return;
  Device& device = logits.session().device();
  device.run(SoftmaxCall{Softmax::kLogSoftmax, false, 1, logits.operand(), logits.operand(), {}});
  const Tensor loss = view(slice(losses, 0, 0, 1), {});
  NllCall call;
  call.log_probabilities = logits.operand();
  call.target = targets.operand();
  call.loss = loss.operand();
  call.total_weight = counted.operand();
  device.run(call);
  in_place(loss, Elementwise::kMulScalar, static_cast<double>(targets.elements()) / all_rows);
  in_place(logits, Elementwise::kExp);
  call.backward = true;
  call.grad_loss = counted.operand();  // divided by itself: one
  call.grad_input = logits.operand();
  device.run(call);
  in_place(logits, Elementwise::kMulScalar, 1 / all_rows);
}

}  // namespace

Tensor fused_head_loss(const Tensor& hidden, const Tensor& weight, const Tensor& targets) {
  Session& session = hidden.session();
  Recording tape(session, "FusedLinearCrossEntropy", {&hidden, &weight});
  const NoGrad off(session);
  const Tensor x = reshape(hidden, {-1, hidden.size(-1)});
  const Tensor wanted = view(targets, {-1});
  const std::int64_t rows = wanted.elements();
  const std::int64_t step = rows_of_chunk(rows, x.size(1), weight.size(0));
  Tensor dhidden;
  Tensor dweight;
  if (tape.needs(0)) dhidden = session.zeros(hidden.shape(), hidden.dtype());
  if (tape.needs(1)) dweight = session.zeros(weight.shape(), weight.dtype());
  const Tensor losses = session.zeros({rows}, DType::kFp32);
  const Tensor counted = session.empty({}, DType::kFp32);
  for (std::int64_t begin = 0; begin < rows; begin += step) {
    const std::int64_t end = std::min(begin + step, rows);
    const Tensor chunk = slice(x, 0, begin, end);
    const Tensor logits = matmul(chunk, transpose(weight, 0, 1));
    loss_and_gradient(logits, slice(wanted, 0, begin, end), slice(losses, 0, begin, end), counted,
                      static_cast<double>(rows));
    if (dhidden) {
      const Tensor product = matmul(logits, weight);
      copy_into(slice(view(dhidden, x.shape()), 0, begin, end), product);
    }
    if (dweight) {
      const Tensor product = matmul(transpose(logits, 0, 1), chunk);
      add_into(dweight, to_dtype(product, DType::kFp32));  // .float(), whatever the type
    }
  }
  Tensor loss = sum_all(losses);
  tape.save(dhidden);
  tape.save(dweight);
  tape.finish(loss, [](Backward& b) {
    for (const std::size_t input : {0U, 1U}) {
      if (!b.needs(input)) continue;
      const Tensor gradient = b.saved(input);
      scale_in_place(gradient, b.gradient());
      b.give(input, gradient);
    }
  });
  return loss;
}

}  // namespace memfathom
