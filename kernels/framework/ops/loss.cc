#include "kernels/framework/ops/loss.h"

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/autocast.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

Tensor softmax_kernel(Softmax op, const Tensor& input, int dim, DType out_dtype) {
  Session& session = input.session();
  const Tensor x = contiguous(input);
  Recording tape(session, op == Softmax::kSoftmax ? "_softmax" : "_log_softmax", {&x});
  Tensor out = session.empty(x.shape(), out_dtype);
  tape.save(out);
  if (session.policy().softmax_keeps_input) tape.save(x);
  if (session.computes())
    session.device().run(SoftmaxCall{op, false, dim, out.operand(), x.operand(), {}});
  tape.finish(out, [op, dim, dtype = x.dtype()](Backward& b) {
    const Tensor y = b.saved(0);
    const Tensor gradient = contiguous(b.gradient());
    Tensor dx = b.session().empty(y.shape(), dtype);
    if (b.session().computes()) {
      b.session().device().run(
          SoftmaxCall{op, true, dim, dx.operand(), gradient.operand(), y.operand()});
    }
    b.give(0, std::move(dx));
  });
  return out;
}

Tensor nll_loss(const Tensor& input, const Tensor& target) {
  Session& session = input.session();
  const Tensor x = autocast_to_fp32(input);
  Recording tape(session, "nll_loss", {&x});
  tape.save(x);
  tape.save(target);
  Tensor loss = session.empty({}, x.dtype());
  const Tensor total_weight = session.empty({}, x.dtype());
  tape.save(total_weight);
  if (session.computes()) {
    NllCall call;
    call.log_probabilities = x.operand();
    call.target = target.operand();
    call.loss = loss.operand();
    call.total_weight = total_weight.operand();
    session.device().run(call);
  }
  tape.finish(loss, [](Backward& b) {
    const Tensor log_probabilities = b.saved(0);
    const Tensor wanted = b.saved(1);
    const Tensor weight = b.saved(2);
    Tensor dx = b.session().zeros(log_probabilities.shape(), log_probabilities.dtype());
    if (b.session().computes()) {
      NllCall call;
      call.backward = true;
      call.log_probabilities = log_probabilities.operand();
      call.target = wanted.operand();
      call.total_weight = weight.operand();
      call.grad_loss = b.gradient().operand();
      call.grad_input = dx.operand();
      b.session().device().run(call);
    }
    b.give(0, std::move(dx));
  });
  return loss;
}

// The mean over targets that are not ignored: a mask zeroes the others, and the sum is divided by
// the count. No target is ignored here.
Tensor mean_of_counted(Tensor& x) {
  Session& session = x.session();
  {
    Recording tape(session, "masked_fill_", {&x});
    tape.save(session.empty(x.shape(), DType::kBool));
    Tensor filled = x.detach();
    tape.finish(filled, [](Backward& b) { b.give(0, clone(b.gradient())); });
    x = filled;
  }
  const Tensor counted = session.empty(x.shape(), DType::kBool);
  const Tensor count = session.empty({}, DType::kInt64);
  const Tensor total = sum_all(x);
  Recording tape(session, "div", {&total});
  tape.save(count);
  const double n = static_cast<double>(x.elements());
  Tensor mean = elementwise(Elementwise::kRealOverScalar, total.dtype(), {&total}, {n});
  tape.finish(mean, [n](Backward& b) {
    const Tensor kept = b.saved(0);
    b.give(0, div_scalar(b.gradient(), n));
  });
  return mean;
}

struct PairRule {
  Elementwise forward;
  Elementwise backward;
};

PairRule rule_of(PairLoss loss) {
  switch (loss) {
    case PairLoss::kMse: return {Elementwise::kSquaredDifference, Elementwise::kMseBackward};
    case PairLoss::kL1: break;  // in elementary operations
    case PairLoss::kSmoothL1: return {Elementwise::kSmoothL1, Elementwise::kSmoothL1Backward};
    case PairLoss::kBce: return {Elementwise::kBce, Elementwise::kBceBackward};
    case PairLoss::kBceWithLogits:
      return {Elementwise::kBceWithLogits, Elementwise::kBceWithLogitsBackward};
  }
  return {};
}

}  // namespace

Tensor softmax(const Tensor& x, int dim) {
  if (x.session().autocast && is_16bit_float(x.dtype())) return softmax_fp32(x, dim);
  return softmax_kernel(Softmax::kSoftmax, x, dim, x.dtype());
}

Tensor log_softmax(const Tensor& x, int dim) {
  // fp16 is widened inside the kernel, as in softmax_fp32.
  if (x.session().autocast && x.dtype() == DType::kFp16)
    return softmax_kernel(Softmax::kLogSoftmax, x, dim, DType::kFp32);
  const Tensor wide = autocast_to_fp32(x);
  return softmax_kernel(Softmax::kLogSoftmax, wide, dim, wide.dtype());
}

Tensor softmax_fp32(const Tensor& x, int dim) {
  if (x.dtype() == DType::kFp16) return softmax_kernel(Softmax::kSoftmax, x, dim, DType::kFp32);
  const Tensor wide = to_dtype(x, DType::kFp32);
  return softmax_kernel(Softmax::kSoftmax, wide, dim, DType::kFp32);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, double label_smoothing) {
  // cross_entropy_loss calls its kernels without autocast: log_softmax keeps the logits' type.
  const Tensor log_probabilities = softmax_kernel(Softmax::kLogSoftmax, logits, 1, logits.dtype());
  Tensor loss = nll_loss(log_probabilities, target);
  if (label_smoothing == 0) return loss;
  // mean over the batch of -sum over classes, mixed in with the smoothing weight
  Tensor smooth = sum(log_probabilities, {1}, false);
  smooth = neg(smooth);
  const Tensor mean = mean_of_counted(smooth);
  const double classes = static_cast<double>(logits.size(1));
  const Tensor plain = mul_scalar(loss, 1 - label_smoothing);
  return add(plain, mul_scalar(mean, label_smoothing / classes));
}

Tensor pair_loss(PairLoss loss, const Tensor& input, const Tensor& target_input) {
  Session& session = input.session();
  const Tensor target = autocast_to_fp32(target_input);
  const Tensor x = autocast_to_fp32(input);
  if (loss == PairLoss::kL1) {
    Tensor difference = sub(x, target);
    difference = absolute(difference);
    return mean_all(difference);
  }
  const PairRule rule = rule_of(loss);
  Recording tape(session, "pair_loss", {&x});
  tape.save(x);
  tape.save(target);
  const double scale = 1.0 / static_cast<double>(x.elements());
  Tensor unreduced = session.kernel_temporary(x.shape(), x.dtype());
  Tensor out = session.empty({}, x.dtype());
  if (session.computes()) {
    session.device().run(
        ElementwiseCall{rule.forward, unreduced.operand(), x.operand(), target.operand(), {}, {1}});
    Operand scalar = out.operand();
    for (int i = 0; i < x.rank(); ++i) {
      scalar.shape.push_back(1);
      scalar.strides.push_back(1);
    }
    session.device().run(ReduceCall{Reduction::kMean, scalar, unreduced.operand()});
  }
  unreduced.reset();
  tape.finish(out, [rule, scale](Backward& b) {
    const Tensor saved_x = b.saved(0);
    const Tensor saved_target = b.saved(1);
    Tensor probabilities;  // aten's formula for BCE on logits divides a copy
    if (rule.backward == Elementwise::kBceWithLogitsBackward)
      probabilities = b.session().empty(saved_x.shape(), saved_x.dtype());
    b.give(0, elementwise(rule.backward, saved_x.dtype(), {&b.gradient(), &saved_x, &saved_target},
                          {scale, 1}));
  });
  return out;
}

Tensor dropout(const Tensor& x, double p) {
  Session& session = x.session();
  if (p == 0 || !session.training) return x;
  Recording tape(session, "native_dropout", {&x});
  Tensor out = session.empty_strided(x.shape(), x.strides(), x.dtype());
  const Tensor mask = session.empty_strided(x.shape(), x.strides(), DType::kBool);
  tape.save(mask);
  if (session.computes()) {
    session.device().run(DropoutCall{p, 1, session.next_random_offset(), x.operand(), out.operand(),
                                     mask.operand()});
  }
  tape.finish(out, [scale = 1 / (1 - p)](Backward& b) {
    const Tensor kept = b.saved(0);
    b.give(0, elementwise(Elementwise::kMaskedScale, b.gradient().dtype(), {&b.gradient(), &kept},
                          {scale}));
  });
  return out;
}

void dropout_in_place(Tensor& x, double p) {
  Session& session = x.session();
  if (p == 0 || !session.training) return;
  Recording tape(session, "mul_", {&x});
  const Tensor noise = session.empty_strided(x.shape(), x.strides(), x.dtype());
  tape.save(noise);
  if (session.computes()) {
    ElementwiseCall ones{Elementwise::kFill, noise.operand(), {}, {}, {}, {1}};
    session.device().run(ones);
    session.device().run(DropoutCall{p, 1, session.next_random_offset(), noise.operand(),
                                     noise.operand(), Operand{}});
    session.device().run(
        ElementwiseCall{Elementwise::kMul, x.operand(), x.operand(), noise.operand(), {}, {}});
  }
  Tensor changed = x.detach();
  tape.finish(changed, [](Backward& b) {
    const Tensor kept = b.saved(0);
    b.give(0, elementwise(Elementwise::kMul, b.gradient().dtype(), {&b.gradient(), &kept}));
  });
  x = changed;
}

}  // namespace memfathom
