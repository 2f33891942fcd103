#include "kernels/framework/ops/convolution.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/pytorch_convolution.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/autocast.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/layout.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// The copy that a convolution's host code makes if the memory layout differs.
Tensor formatted(const Tensor& x, bool channels_last) {
  if (!x.session().policy().count_workspaces && !x.session().computes()) return x;
  if (!channels_last) return contiguous(x);
  if (is_channels_last_contiguous(x)) return x;
  Tensor copy = x.session().empty_strided(x.shape(), channels_last_strides(x.shape()), x.dtype());
  copy_into(copy, x);
  return copy;
}

Tensor empty_formatted(Session& session, const Shape& shape, DType dtype, bool channels_last) {
  return channels_last ? session.empty_strided(shape, channels_last_strides(shape), dtype)
                       : session.empty(shape, dtype);
}

ConvolutionQuery query_of(ConvolutionKind kind, const Tensor& x, const Tensor& weight,
                          const ConvolutionOptions& options, bool channels_last) {
  ConvolutionQuery query;
  query.kind = kind;
  query.input = x.shape();
  query.weight = weight.shape();
  query.stride = options.stride;
  query.padding = options.padding;
  query.dilation = options.dilation;
  query.output_padding = options.output_padding;
  query.groups = options.groups;
  query.transposed = options.transposed;
  query.channels_last = channels_last;
  query.benchmark = x.session().cudnn_benchmark;
  query.dtype = x.dtype();
  return query;
}

// In benchmark mode cuDNN tries every engine in the largest workspace of all that may fit. PyTorch
// asks for half of it, again and again, where its allocator fails (generate_and_filter_plans() in
// Conv_v8.cpp), and tries the engines that fit in what it got.
Tensor benchmark_workspace(Session& session, Bytes bytes) {
  for (; bytes > Bytes{}; bytes = Bytes{bytes.count() / 2}) {
    try {
      return session.workspace(bytes, Component::kWorkspaceCudnn);
    } catch (const OutOfMemory&) {  // its cache is released; the next one is smaller
    }
  }
  return {};
}

Tensor workspace_for(Session& session, const ConvolutionQuery& query) {
  if (!session.policy().count_workspaces) return {};
  const Bytes bytes = session.workspaces().convolution(query).bytes;
  return query.benchmark ? benchmark_workspace(session, bytes)
                         : session.workspace(bytes, Component::kWorkspaceCudnn);
}

// One library call with the workspace it requests; `fill` sets its operands.
template <typename Fill>
void run_convolution(ConvolutionKind kind, const Tensor& x, const Tensor& weight,
                     const ConvolutionOptions& options, bool channels_last, Fill fill) {
  Session& session = x.session();
  ConvolutionCall call;
  call.query = query_of(kind, x, weight, options, channels_last);
  if (pytorch_uses_cudnn(call.query)) session.note_cudnn();
  const Tensor workspace = workspace_for(session, call.query);
  if (!session.computes()) return;
  call.workspace = workspace.operand();
  fill(call);
  session.device().run(call);
}

void convolution_backward(Backward& b, const ConvolutionOptions& options) {
  Session& session = b.session();
  const Tensor saved_x = b.saved(0);
  const Tensor weight = b.saved(1);
  const bool channels_last = is_channels_last(saved_x) || is_channels_last(weight);
  const Tensor x = formatted(saved_x, channels_last);
  const Tensor dy = formatted(b.gradient(), channels_last);
  if (b.needs(0)) {
    Tensor dx = empty_formatted(session, x.shape(), x.dtype(), channels_last);
    const Tensor w = formatted(weight, channels_last);
    run_convolution(ConvolutionKind::kDataGradient, x, w, options, channels_last,
                    [&](ConvolutionCall& call) {
                      call.w = w.operand();
                      call.dy = dy.operand();
                      call.dx = dx.operand();
                    });
    b.give(0, std::move(dx));
  }
  if (b.needs(1)) {
    Tensor dw = empty_formatted(session, weight.shape(), weight.dtype(), channels_last);
    run_convolution(ConvolutionKind::kWeightGradient, x, weight, options, channels_last,
                    [&](ConvolutionCall& call) {
                      call.x = x.operand();
                      call.dy = dy.operand();
                      call.dw = dw.operand();
                    });
    b.give(1, std::move(dw));
  }
  if (b.needs(2)) {
    Shape channels = dy.shape();
    for (int i = 0; i < channels.rank(); ++i) channels[i] = i == 1 ? dy.size(1) : 1;
    const Tensor db = sum_to_shape(dy, channels);
    b.give(2, db.alias({dy.size(1)}, {1}, 0));
  }
}

}  // namespace

Shape convolution_shape(const Shape& x, const Shape& weight, const ConvolutionOptions& options) {
  const std::int64_t channels = options.transposed ? weight[0] : weight[1] * options.groups;
  if (x.rank() != weight.rank() || x[1] != channels) {
    throw Error(
        ErrorKind::kInput,
        fmt::format(
            "a convolution of {} channels got an input of shape {}; the layers do not fit together",
            channels, to_string(x)));
  }
  Shape out = x;
  out[1] = options.transposed ? weight[1] * options.groups : weight[0];
  for (int i = 2; i < x.rank(); ++i) {
    const int s = i - 2;
    const std::int64_t reach = options.dilation[s] * (weight[i] - 1);
    if (options.transposed) {
      const std::int64_t extra = options.output_padding.rank() > s ? options.output_padding[s] : 0;
      out[i] = (x[i] - 1) * options.stride[s] - 2 * options.padding[s] + reach + extra + 1;
    } else {
      const std::int64_t room = x[i] + 2 * options.padding[s] - reach - 1;
      out[i] = room < 0 ? 0 : room / options.stride[s] + 1;
    }
    if (out[i] < 1) {
      throw Error(ErrorKind::kInput, fmt::format("a kernel of {} does not fit into an input of "
                                                 "shape {}; use a larger image or less stride",
                                                 weight[i], to_string(x)));
    }
  }
  return out;
}

Tensor convolution(const Tensor& input, const Tensor& weight_in, const Tensor& bias_in,
                   const ConvolutionOptions& options) {
  Session& session = input.session();
  const Tensor bias = autocast_to_lower(bias_in);
  const Tensor weight = autocast_to_lower(weight_in);
  const Tensor x = autocast_to_lower(input);
  Recording tape(session, "convolution", {&x, &weight, &bias});
  tape.save(x);
  tape.save(weight);
  const bool channels_last = is_channels_last(x) || is_channels_last(weight);
  Tensor out;
  {
    const Tensor source = formatted(x, channels_last);
    out = empty_formatted(session, convolution_shape(x.shape(), weight.shape(), options), x.dtype(),
                          channels_last);
    const Tensor w = formatted(weight, channels_last);
    run_convolution(ConvolutionKind::kForward, source, w, options, channels_last,
                    [&](ConvolutionCall& call) {
                      call.x = source.operand();
                      call.w = w.operand();
                      call.y = out.operand();
                    });
  }
  if (bias && session.computes()) {
    Shape wide = out.shape();
    for (int i = 0; i < wide.rank(); ++i) wide[i] = i == 1 ? bias.elements() : 1;
    add_into(out, bias.alias(wide, contiguous_strides(wide), bias.impl()->offset));
  }
  tape.finish(out, [options](Backward& b) { convolution_backward(b, options); });
  return out;
}

}  // namespace memfathom
