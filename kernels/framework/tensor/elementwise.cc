#include "kernels/framework/tensor/elementwise.h"

#include "kernels/framework/tensor/broadcast.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {

void elementwise_into(Elementwise op, const Tensor& out,
                      std::initializer_list<const Tensor*> inputs, std::array<double, 4> scalars) {
  Session& session = out.session();
  if (!session.computes()) return;
  ElementwiseCall call;
  call.op = op;
  call.out = out.operand();
  call.scalars = scalars;
  Operand* slots[] = {&call.a, &call.b, &call.c};
  std::size_t i = 0;
  for (const Tensor* input : inputs) *slots[i++] = broadcast_operand(*input, out.shape());
  session.device().run(call);
}

Tensor elementwise(Elementwise op, DType dtype, std::initializer_list<const Tensor*> inputs,
                   std::array<double, 4> scalars) {
  const Tensor& first = **inputs.begin();
  Shape shape = first.shape();
  for (const Tensor* input : inputs) shape = broadcast_shapes(shape, input->shape());
  Tensor out = first.session().empty_strided(shape, result_strides(shape, inputs), dtype);
  elementwise_into(op, out, inputs, scalars);
  return out;
}

Tensor reduce_to(Reduction op, const Tensor& x, const Shape& reduced, DType dtype) {
  Tensor out = x.session().empty(reduced, dtype);
  if (x.session().computes()) x.session().device().run(ReduceCall{op, out.operand(), x.operand()});
  return out;
}

Tensor sum_to_shape(const Tensor& x, const Shape& shape) {
  const int extra = x.rank() - shape.rank();
  Shape reduced = x.shape();
  for (int i = 0; i < x.rank(); ++i) {
    if (i < extra || shape[i - extra] == 1) reduced[i] = 1;
  }
  const Tensor out = reduce_to(Reduction::kSum, x, reduced, x.dtype());
  return out.alias(shape, contiguous_strides(shape), 0);
}

void add_into(const Tensor& target, const Tensor& x) {
  elementwise_into(Elementwise::kAdd, target, {&target, &x}, {1});
}

void copy_into(const Tensor& target, const Tensor& x) {
  elementwise_into(Elementwise::kCopy, target, {&x}, {});
}

}  // namespace memfathom
