#include "kernels/framework/ops/attention.h"

#include <array>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "kernels/framework/device/attention_query.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/autocast.h"
#include "kernels/framework/ops/efficient_attention.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/broadcast.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

std::int64_t round_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

struct KernelCase {
  AttentionKernel kernel;
  bool may_be_cudnn;  // where PyTorch prefers it: unless the job names the memory-efficient kernel
  bool causal;
  double scale;
  double dropout;
  std::uint64_t offset;
};

AttentionCall call_of(const KernelCase& c, const Tensor& q, const Tensor& k, const Tensor& v,
                      const Tensor& mask) {
  AttentionCall call;
  call.kernel = c.kernel;
  call.causal = c.causal;
  call.scale = c.scale;
  call.dropout = c.dropout;
  call.seed = 1;
  call.offset = c.offset;
  call.q = q.operand();
  call.k = k.operand();
  call.v = v.operand();
  call.mask = mask.operand();
  return call;
}

// What PyTorch's can_use_cudnn_attention() (sdp_utils.cpp) asks of a call; wider heads run on cuDNN
// only with some versions of it.
bool fits_cudnn(const AttentionCall& call) {
  constexpr std::int64_t kMaxHeadSize = 128;
  const std::int64_t size = call.q.shape[-1];
  return is_16bit_float(call.q.dtype) && size <= kMaxHeadSize && size % 8 == 0 &&
         call.k.shape[-2] != 1 && call.dropout * 16 == std::floor(call.dropout * 16);
}

// The workspace the device's library needs for the call; 0 bytes with source kDefault where our own
// kernels run it.
WorkspaceSize library_workspace(Session& session, const AttentionCall& call, const KernelCase& c) {
  // The dry device has no library to ask, but the fit and the estimate need to know that it loads.
  if (!session.computes()) {
    if (session.policy().prefers_cudnn_attention && c.may_be_cudnn && fits_cudnn(call))
      session.note_cudnn_attention();
    return {};
  }
  if (call.kernel != AttentionKernel::kFlash || call.mask || call.dropout > 0) return {};
  const WorkspaceSize answer = session.workspaces().attention(query_of(call));
  if (answer.source != Source::kDefault) session.note_cudnn_attention();
  return answer;
}

// Flash attention's backward temporaries: the fp32 accumulator of dq, the row sums and, for grouped
// heads, dk and dv of every query head.
std::array<Tensor, 4> flash_backward_temporaries(Session& session, const Tensor& q,
                                                 const Tensor& k) {
  const std::int64_t rows = round_up(q.size(2), 128);
  std::array<Tensor, 4> held;
  held[0] = session.kernel_temporary({q.size(0), q.size(1), rows}, DType::kFp32);
  held[1] =
      session.kernel_temporary({q.size(0), rows, q.size(1), round_up(q.size(3), 32)}, DType::kFp32);
  if (q.size(1) != k.size(1)) {
    const Shape expanded{k.size(0), k.size(2), q.size(1), k.size(3)};
    held[2] = session.kernel_temporary(expanded, k.dtype());
    held[3] = session.kernel_temporary(expanded, k.dtype());
  }
  return held;
}

// The memory-efficient kernel's: its row sums and its workspace.
std::array<Tensor, 4> efficient_backward_temporaries(Session& session, const AttentionCall& call) {
  const EfficientAttentionBackward sizes = efficient_attention_backward(
      session.policy(), call.q.dtype, call.q.shape, call.k.shape, call.dropout);
  const auto temporary = [&](Bytes bytes) {
    return bytes > Bytes{} ? session.kernel_temporary({bytes.count()}, DType::kUint8) : Tensor();
  };
  std::array<Tensor, 4> held;
  {
    const Tensor products = temporary(sizes.products);
    const Tensor sums = products ? temporary(sizes.row_sums) : Tensor();
    held[0] = temporary(sizes.row_sums);
  }
  held[1] = temporary(sizes.workspace);
  return held;
}

Tensor heads_last(Session& session, const Tensor& like, std::int64_t head_size) {
  const Tensor rows =
      session.empty({like.size(0), like.size(2), like.size(1), head_size}, like.dtype());
  Shape shape = rows.shape();
  Shape strides = rows.strides();
  std::swap(shape[1], shape[2]);
  std::swap(strides[1], strides[2]);
  return rows.alias(shape, strides, 0);
}

// The gradient of the bias as the kernel sees it, expanded over batch and heads, with rows padded
// to 16 (the mask's rows are padded to 8).
Tensor bias_gradient(Session& session, const Tensor& bias) {
  if (session.computes()) {
    throw Error(
        ErrorKind::kInput,
        "the gradient of an attention bias is kept as accounts only; measure with eager attention");
  }
  Shape shape = bias.shape();
  shape[-1] = round_up(shape[-1], 16);
  const Tensor rows = session.empty(shape, bias.dtype());
  return shape[-1] == bias.size(-1) ? rows : slice(rows, -1, 0, bias.size(-1));
}

void attention_backward(Backward& b, const KernelCase& c) {
  Session& session = b.session();
  const Tensor k = b.saved(0);
  const Tensor q = b.saved(1);
  const Tensor v = b.saved(2);
  const Tensor mask = b.saved(3);
  const Tensor logsumexp = b.saved(4);
  const Tensor out = b.saved(5);
  const Tensor seed = b.saved(6);
  const Tensor offset = b.saved(7);
  Tensor gradient = b.gradient();
  if (gradient.strides()[-1] != 1) gradient = clone(gradient);
  const bool flash = c.kernel == AttentionKernel::kFlash;
  const auto gradient_of = [&](const Tensor& x) {
    return flash ? session.empty_strided(x.shape(), result_strides(x.shape(), {&x}), x.dtype())
                 : heads_last(session, x, x.size(3));
  };
  Tensor dq = gradient_of(q);
  Tensor dk = gradient_of(k);
  Tensor dv = gradient_of(v);
  Tensor dmask;
  if (b.needs(3)) dmask = bias_gradient(session, mask);
  AttentionCall call = call_of(c, q, k, v, mask);
  call.backward = true;
  call.out = out.operand();
  call.logsumexp = logsumexp.operand();
  call.dout = gradient.operand();
  call.dq = dq.operand();
  call.dk = dk.operand();
  call.dv = dv.operand();
  // A library's workspace replaces the temporaries of PyTorch's own kernel.
  const WorkspaceSize wanted = library_workspace(session, call, c);
  const Tensor workspace = session.workspace(wanted.bytes, Component::kWorkspaceCudnn);
  std::array<Tensor, 4> temporaries;
  if (flash && wanted.source == Source::kDefault) {
    temporaries = flash_backward_temporaries(session, q, k);
  } else if (!flash) {
    temporaries = efficient_backward_temporaries(session, call);
  }
  if (session.computes()) {
    call.workspace = workspace.operand();
    session.device().run(call);
  }
  if (b.needs(0)) b.give(0, std::move(dq));
  if (b.needs(1)) b.give(1, std::move(dk));
  if (b.needs(2)) b.give(2, std::move(dv));
  if (dmask) b.give(3, std::move(dmask));
}

Tensor fused_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                       const KernelCase& c) {
  Session& session = q.session();
  Recording tape(session, "scaled_dot_product_attention", {&q, &k, &v, &mask});
  tape.save(k);
  tape.save(q);
  tape.save(v);
  tape.save(mask);
  const bool flash = c.kernel == AttentionKernel::kFlash;
  // Flash uses the query's layout for its result; the memory-efficient kernel always uses [batch,
  // sequence, heads, size] with the values' head size, which may differ from the keys'.
  Tensor out = flash ? session.empty_strided(q.shape(), result_strides(q.shape(), {&q}), q.dtype())
                     : heads_last(session, q, v.size(3));
  // The memory-efficient kernel computes the statistics only if a gradient is required, in rows of
  // 32.
  const std::int64_t rows = flash ? q.size(2) : (tape.wanted() ? round_up(q.size(2), 32) : 0);
  const Tensor logsumexp = session.empty({q.size(0), q.size(1), rows}, DType::kFp32);
  const Tensor seed = session.empty({flash ? 2 : 1}, DType::kInt64);
  const Tensor offset = session.empty({1}, DType::kInt64);
  tape.save(logsumexp);
  tape.save(out);
  tape.save(seed);
  tape.save(offset);
  AttentionCall call = call_of(c, q, k, v, mask);
  call.out = out.operand();
  call.logsumexp = logsumexp.operand();
  const WorkspaceSize wanted = library_workspace(session, call, c);
  if (session.computes()) {
    const Tensor workspace = session.workspace(wanted.bytes, Component::kWorkspaceCudnn);
    call.workspace = workspace.operand();
    session.device().run(call);
  }
  tape.finish(out, [c](Backward& b) { attention_backward(b, c); });
  return out;
}

// PyTorch's math fallback: matmuls and softmax as separate tensors; 16-bit inputs are computed in
// fp32.
Tensor math_attention(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in,
                      const AttentionOptions& options) {
  Session& session = q_in.session();
  const DType dtype = q_in.dtype();
  const double root =
      std::sqrt(options.scale.value_or(1 / std::sqrt(static_cast<double>(q_in.size(3)))));
  Tensor mask = options.mask;
  if (mask && mask.dtype() == DType::kBool) mask = session.full(mask.shape(), dtype, 0);
  const Tensor q32 = to_dtype(q_in, DType::kFp32);
  const Tensor k32 = to_dtype(k_in, DType::kFp32);
  const Tensor v32 = to_dtype(v_in, DType::kFp32);
  if (options.causal && !mask) {
    const Shape square{q_in.size(2), k_in.size(2)};
    Tensor allowed = session.full(square, DType::kBool, 1);
    allowed = session.full(square, DType::kBool, 1);  // tril() of the mask
    mask = session.full(square, DType::kFp32, 0);
    allowed = session.full(square, DType::kBool, 1);  // the negated mask, for masked_fill
  }
  const Tensor q = mul_scalar(q32, root);
  const std::int64_t groups = options.enable_gqa ? q_in.size(1) / k_in.size(1) : 1;
  const Tensor keys = repeat_interleave_heads(k32, groups);
  const Tensor values = repeat_interleave_heads(v32, groups);
  Tensor scores;
  {
    const Tensor k = mul_scalar(transpose(keys, 2, 3), root);
    scores = matmul(q, k);
  }
  if (mask && session.policy().in_place_shortcuts) {
    add_in_place(scores, mask);
  } else if (mask) {
    scores = add(scores, mask);
  }
  scores = softmax(scores, -1);
  scores = dropout(scores, options.dropout);
  // Returned in addition to the result and dropped; aten's compilers evaluate this expression
  // first.
  const Tensor weights = to_dtype(scores.detach(), dtype);
  const Tensor out = matmul(scores, values);
  return to_dtype(out, dtype);
}

// Each call converts a boolean mask to q's type; the memory-efficient kernel needs rows that are
// multiples of 8.
Tensor kernel_mask(const Tensor& mask, const Tensor& q, const Tensor& k) {
  if (!mask) return mask;
  Session& session = q.session();
  Tensor numbers = mask.dtype() == DType::kBool ? session.full(mask.shape(), q.dtype(), 0) : mask;
  const std::int64_t missing = round_up(k.size(2), 8) - k.size(2);
  if (missing > 0) {
    const std::int64_t pairs[] = {0, missing};
    numbers = slice(pad(numbers, pairs), -1, 0, k.size(2));
  }
  return expand(numbers, {q.size(0), q.size(1), q.size(2), k.size(2)});
}

}  // namespace

std::optional<AttentionImplementation> parse_attention(std::string_view name) {
  static constexpr auto kAliases = std::to_array<EnumName<AttentionImplementation>>(
      {{AttentionImplementation::kAuto, "auto"},
       {AttentionImplementation::kAuto, "default"},
       {AttentionImplementation::kEfficient, "mem_efficient"},
       {AttentionImplementation::kEfficient, "xformers"},
       {AttentionImplementation::kFlash, "flash_attention_2"},
       {AttentionImplementation::kFlash, "flash_attention_3"},
       {AttentionImplementation::kFlash, "flash-attn"}});
  return enum_from_name(name, kAliases);
}

AttentionImplementation choose_attention(const FrameworkPolicy& policy,
                                         const AttentionOptions& options, DType dtype,
                                         std::int64_t head_size, bool grouped) {
  if (options.implementation != AttentionImplementation::kAuto) return options.implementation;
  if (!policy.has_fused_attention) return AttentionImplementation::kMath;
  if (grouped && !options.enable_gqa) return AttentionImplementation::kMath;
  const bool flash_possible = is_16bit_float(dtype) && policy.compute_capability >= 80 &&
                              !options.mask && head_size <= 256 &&
                              (!grouped || policy.attention_has_gqa);
  if (flash_possible) return AttentionImplementation::kFlash;
  // The memory-efficient kernel loads 16 bytes of a head at a time; it has bf16 from sm_80 on.
  const bool aligned = head_size * bits_of(dtype) % 128 == 0;
  const bool has_type = dtype != DType::kBf16 || policy.compute_capability >= 80;
  const bool grouped_possible = !grouped || policy.efficient_attention_has_gqa;
  return grouped_possible && aligned && has_type ? AttentionImplementation::kEfficient
                                                 : AttentionImplementation::kMath;
}

Tensor scaled_dot_product_attention(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in,
                                    const AttentionOptions& options) {
  const Tensor bias = autocast_to_lower(options.mask);
  const Tensor v = autocast_to_lower(v_in);
  const Tensor k = autocast_to_lower(k_in);
  const Tensor q = autocast_to_lower(q_in);
  Session& session = q.session();
  AttentionImplementation chosen =
      choose_attention(session.policy(), options, q.dtype(), q.size(3), q.size(1) != k.size(1));
  // Flash requires equal head sizes of keys and values.
  if (chosen == AttentionImplementation::kFlash && v.size(3) != q.size(3))
    chosen = AttentionImplementation::kEfficient;
  if (chosen == AttentionImplementation::kMath) {
    const Scoped<std::optional<DType>> inside(
        session.autocast, std::nullopt);  // its inner operations run without autocast
    return math_attention(q, k, v, options);
  }
  if (chosen == AttentionImplementation::kEager) {
    throw Error(ErrorKind::kInternal, "eager attention is the model's own code, not a kernel");
  }
  const bool flash = chosen == AttentionImplementation::kFlash;
  const KernelCase c{flash ? AttentionKernel::kFlash : AttentionKernel::kEfficient,
                     options.implementation != AttentionImplementation::kEfficient,
                     options.causal && !options.mask,
                     options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(3)))),
                     options.dropout,
                     options.dropout > 0 ? session.next_random_offset() : 0};
  const std::int64_t head_size = q.size(3);
  if (flash && head_size % 8 != 0) {
    // Flash requires head sizes that are multiples of 8: inputs are padded, and the result is
    // sliced.
    const std::int64_t pairs[] = {0, round_up(head_size, 8) - head_size};
    const Tensor wide_q = pad(q, pairs);
    const Tensor wide_k = pad(k, pairs);
    const Tensor wide_v = pad(v, pairs);
    return slice(fused_attention(wide_q, wide_k, wide_v, {}, c), -1, 0, head_size);
  }
  return fused_attention(q, k, v, kernel_mask(bias, q, k), c);
}

Tensor apply_rotary(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  const Tensor plain = mul(x, cos);
  Tensor turned;
  {
    const std::int64_t half = x.size(-1) / 2;
    const Tensor first = slice(x, -1, 0, half);
    const Tensor second = slice(x, -1, half, x.size(-1));
    const Tensor parts[] = {neg(second), first};
    turned = cat(parts, -1);
  }
  turned = mul(turned, sin);
  return add(plain, turned);
}

}  // namespace memfathom
