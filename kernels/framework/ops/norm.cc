#include "kernels/framework/ops/norm.h"

#include <limits>

#include "core/version.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/autocast.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/layout.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

Tensor like(const Tensor& x) {
  return x.session().empty_strided(x.shape(), x.strides(), x.dtype());
}

// The contiguous copy that a kernel's host code makes of a strided input; autograd saves the
// original.
Tensor inside_kernel(const Tensor& x) {
  return x.session().policy().count_workspaces || x.session().computes() ? contiguous(x) : x;
}

// Whether the kernel computes channels-last inputs in that layout. (Batch norm always uses its
// input's layout.)
bool keeps_layout(const Session& session, Norm op) {
  return op == Norm::kGroup && session.policy().group_norm_keeps_layout;
}

// A copy of `x` in the layout the kernel uses: that of `pattern`.
Tensor inside_kernel_like(const Tensor& x, const Tensor& pattern, Norm op) {
  const bool channels_last = keeps_layout(x.session(), op) && is_channels_last(pattern);
  if (!channels_last) return inside_kernel(x);
  if (x.strides() == pattern.strides()) return x;
  if (!x.session().policy().count_workspaces && !x.session().computes()) return x;
  Tensor copy = like(pattern);
  copy_into(copy, x);
  return copy;
}

// A result with the extents and, if the kernel preserves it, the layout of `x`.
Tensor result_like(const Tensor& x, Norm op) {
  return keeps_layout(x.session(), op) && is_channels_last(x)
             ? like(x)
             : x.session().empty(x.shape(), x.dtype());
}

// The required gradients of input, weight and bias, from a norm's single backward kernel. cuDNN's
// batch norm always writes all three.
void give_norm_gradients(Backward& b, NormCall call, const Tensor& x, const Tensor& weight) {
  Session& session = b.session();
  const Tensor gradient =
      call.op == Norm::kBatch ? b.gradient() : inside_kernel_like(b.gradient(), x, call.op);
  Tensor dx;
  Tensor dweight;
  Tensor dbias;
  const bool all = call.op == Norm::kBatch;
  if (all || b.needs(0)) dx = all ? like(x) : result_like(x, call.op);
  if ((all && weight) || b.needs(1)) dweight = session.empty(weight.shape(), weight.dtype());
  if ((all && weight) || b.needs(2)) dbias = session.empty(weight.shape(), weight.dtype());
  if (session.computes()) {
    call.backward = true;
    call.x = x.operand();
    call.weight = weight.operand();
    call.dy = gradient.operand();
    call.dx = dx.operand();
    call.dweight = dweight.operand();
    call.dbias = dbias.operand();
    session.device().run(call);
  }
  if (b.needs(0)) b.give(0, std::move(dx));
  if (b.needs(1)) b.give(1, std::move(dweight));
  if (b.needs(2)) b.give(2, std::move(dbias));
}

// Layer and group norm: mean and rstd of each of `rows`, in fp32 for layer norm, in the input's
// type for group norm. `form` holds the call's non-tensor fields.
Tensor norm_by_rows(const char* name, const NormCall& form, const Tensor& input,
                    const Tensor& weight, const Tensor& bias, const Shape& rows) {
  Session& session = input.session();
  const Tensor cast_bias = autocast_to_fp32(bias);
  const Tensor w = autocast_to_fp32(weight);
  const Tensor x = autocast_to_fp32(input);
  Recording tape(session, name, {&x, &w, &cast_bias});
  tape.save(x);
  tape.save(w);
  const Tensor source = inside_kernel_like(x, x, form.op);
  Tensor out = result_like(x, form.op);
  const DType statistics = form.op == Norm::kLayer ? DType::kFp32 : x.dtype();
  const Tensor mean = session.empty(rows, statistics);
  const Tensor rstd = session.empty(rows, statistics);
  tape.save(mean);
  tape.save(rstd);
  if (session.computes()) {
    NormCall call = form;
    call.x = source.operand();
    call.weight = w.operand();
    call.bias = cast_bias.operand();
    call.y = out.operand();
    call.mean = mean.operand();
    call.rstd = rstd.operand();
    session.device().run(call);
  }
  tape.finish(out, [op = form.op, groups = form.groups, eps = form.eps](Backward& b) {
    const Tensor saved_x = b.saved(0);
    const Tensor saved_w = b.saved(1);
    const Tensor saved_mean = b.saved(2);
    const Tensor saved_rstd = b.saved(3);
    NormCall back;
    back.op = op;
    back.groups = groups;
    back.eps = eps;
    back.mean = saved_mean.operand();
    back.rstd = saved_rstd.operand();
    give_norm_gradients(b, back, inside_kernel_like(saved_x, saved_x, op), saved_w);
  });
  return out;
}

// The conditions of _select_batch_norm_backend (aten/src/ATen/native/Normalization.cpp, read in the
// source of 2.x); without them PyTorch's own kernel runs, which saves the same tensors. Inputs
// without positions ran on cuDNN too, with bounds of their own (pytorch#32763), until pytorch#57034
// and #57785 of May 2021: 1.8.1 still did. That 1.9, the next release, has them is an assumption.
bool batch_norm_uses_cudnn(const Tensor& x, const Tensor& weight, bool training) {
  constexpr std::int64_t kMaxTrainingBatch = 880801;
  constexpr std::int64_t kMaxEvaluationBatch = 65535;
  constexpr std::int64_t kMaxTrainingRows = 131070;
  constexpr std::int64_t kMaxEvaluationRows = 262136;
  constexpr Version kNativeWithoutPositions{1, 9};
  if (x.dtype() == DType::kBf16 || !weight || weight.dtype() == DType::kBf16) return false;
  if (x.dtype() == DType::kFp16 && weight.dtype() != DType::kFp32) return false;
  if (x.elements() >= std::numeric_limits<std::int32_t>::max()) return false;
  if (x.shape().rank() >= 3)
    return x.size(0) <= (training ? kMaxTrainingBatch : kMaxEvaluationBatch);
  return x.session().policy().torch_version < kNativeWithoutPositions &&
         x.size(0) <= (training ? kMaxTrainingRows : kMaxEvaluationRows);
}

}  // namespace

Tensor layer_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps) {
  Shape rows = input.shape();
  rows[-1] = 1;
  NormCall form;
  form.op = Norm::kLayer;
  form.eps = eps;
  return norm_by_rows("native_layer_norm", form, input, weight, bias, rows);
}

Tensor rms_norm(const Tensor& input, const Tensor& parameter, double eps) {
  Session& session = input.session();
  const Tensor weight = autocast_to_fp32(parameter);
  const Tensor x = autocast_to_fp32(input);
  if (!session.policy().rms_norm_is_fused) return rms_norm_python(x, weight, eps);
  if (weight.dtype() != x.dtype()) {
    // The composite: upcast, normalize and multiply by the weight in PyTorch's elementary
    // operations.
    const Tensor wide = to_dtype(x, DType::kFp32);
    Tensor t = pow_scalar(wide, 2);
    t = mean(t, {-1}, true);
    t = add_scalar(t, eps);
    t = rsqrt(t);
    t = mul(wide, t);
    return to_dtype(mul(t, weight), x.dtype());
  }
  Recording tape(session, "_fused_rms_norm", {&x, &weight});
  tape.save(x);
  tape.save(weight);
  Shape rows = x.shape();
  rows[-1] = 1;
  Tensor out = session.empty(x.shape(), x.dtype());
  const Tensor rstd = session.empty(rows, DType::kFp32);
  tape.save(rstd);
  if (session.computes()) {
    NormCall call;
    call.op = Norm::kRms;
    call.eps = eps;
    call.x = x.operand();
    call.weight = weight.operand();
    call.y = out.operand();
    call.rstd = rstd.operand();
    session.device().run(call);
  }
  tape.finish(out, [eps](Backward& b) {
    const Tensor saved_x = b.saved(0);
    const Tensor saved_w = b.saved(1);
    const Tensor saved_rstd = b.saved(2);
    Tensor dx;
    Tensor dweight;
    if (b.needs(0)) dx = b.session().empty(saved_x.shape(), saved_x.dtype());
    if (b.needs(1)) dweight = b.session().empty(saved_w.shape(), saved_w.dtype());
    if (b.session().computes()) {
      NormCall back;
      back.op = Norm::kRms;
      back.backward = true;
      back.eps = eps;
      back.x = saved_x.operand();
      back.weight = saved_w.operand();
      back.rstd = saved_rstd.operand();
      back.dy = b.gradient().operand();
      back.dx = dx.operand();
      back.dweight = dweight.operand();
      b.session().device().run(back);
    }
    if (dx) b.give(0, std::move(dx));
    if (dweight) b.give(1, std::move(dweight));
  });
  return out;
}

Tensor rms_norm_python(const Tensor& x, const Tensor& weight, double eps) {
  Tensor t = to_dtype(x, DType::kFp32);
  Tensor variance = pow_scalar(t, 2);  // a Python local: it lives until the function returns
  variance = mean(variance, {-1}, true);
  {
    Tensor scale = add_scalar(variance, eps);
    scale = rsqrt(scale);
    t = mul(t, scale);
  }
  const Tensor narrow = to_dtype(t, x.dtype());
  return mul(weight, narrow);
}

Tensor group_norm(const Tensor& input, std::int64_t groups, const Tensor& weight,
                  const Tensor& bias, double eps) {
  NormCall form;
  form.op = Norm::kGroup;
  form.groups = groups;
  form.eps = eps;
  return norm_by_rows("native_group_norm", form, input, weight, bias, {input.size(0), groups});
}

Tensor batch_norm(const Tensor& x, const BatchNormState& state, bool training, double eps) {
  Session& session = x.session();
  Recording tape(session, "cudnn_batch_norm", {&x, &state.weight, &state.bias});
  tape.save(x);
  tape.save(state.weight);
  Tensor out = like(x);
  const Shape channels{x.size(1)};
  // Evaluation saves empty statistics and uses the running ones.
  const Tensor mean = session.empty(training ? channels : Shape{0}, DType::kFp32);
  const Tensor rstd = session.empty(training ? channels : Shape{0}, DType::kFp32);
  const Tensor reserve = session.empty({0}, DType::kUint8);
  tape.save(mean);
  tape.save(rstd);
  if (batch_norm_uses_cudnn(x, state.weight, training)) session.note_cudnn();
  if (session.computes()) {
    NormCall call;
    call.op = Norm::kBatch;
    call.training = training;
    call.eps = eps;
    call.x = x.operand();
    call.weight = state.weight.operand();
    call.bias = state.bias.operand();
    call.y = out.operand();
    if (training) {
      call.mean = mean.operand();
      call.rstd = rstd.operand();
    }
    call.running_mean = state.running_mean.operand();
    call.running_var = state.running_var.operand();
    session.device().run(call);
  }
  tape.save(training ? Tensor() : state.running_mean);
  tape.save(training ? Tensor() : state.running_var);
  tape.finish(out, [eps, training](Backward& b) {
    const Tensor saved_x = b.saved(0);
    const Tensor saved_w = b.saved(1);
    const Tensor saved_mean = b.saved(2);
    const Tensor saved_rstd = b.saved(3);
    const Tensor running_mean = b.saved(4);
    const Tensor running_var = b.saved(5);
    NormCall back;
    back.op = Norm::kBatch;
    back.training = training;
    back.eps = eps;
    if (training) {
      back.mean = saved_mean.operand();
      back.rstd = saved_rstd.operand();
    }
    back.running_mean = running_mean.operand();
    back.running_var = running_var.operand();
    give_norm_gradients(b, back, saved_x, saved_w);
  });
  return out;
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const auto repeated = [&](const Tensor& parameter) {
    const Tensor wide = expand(unsqueeze(parameter, 0), {x.size(0), x.size(1)});
    return reshape(wide, {x.size(0) * x.size(1)});
  };
  BatchNormState state;
  state.weight = repeated(weight);
  state.bias = repeated(bias);
  Shape folded = x.shape();
  folded[0] = 1;
  folded[1] = x.size(0) * x.size(1);
  const Tensor out = batch_norm(view(contiguous(x), folded), state, true, eps);
  return view(out, x.shape());
}

}  // namespace memfathom
