#include "kernels/framework/ops/pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/autocast.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

Shape pooled_shape(const Shape& x, const PoolOptions& options) {
  Shape out = x;
  const int spatial = options.kernel.rank();
  for (int s = 0; s < spatial; ++s) {
    const int i = x.rank() - spatial + s;
    const std::int64_t room = x[i] + 2 * options.padding[s] - options.kernel[s];
    if (room < 0) {
      throw Error(
          ErrorKind::kInput,
          fmt::format(
              "a pooling window of {} does not fit into an input of shape {}; use a larger image",
              options.kernel[s], to_string(x)));
    }
    out[i] = (room + (options.ceil_mode ? options.stride[s] - 1 : 0)) / options.stride[s] + 1;
    // A window that would begin in the right padding is dropped.
    if (options.ceil_mode && (out[i] - 1) * options.stride[s] >= x[i] + options.padding[s])
      --out[i];
  }
  return out;
}

Shape strides_like(const Tensor& x, const Shape& shape) {
  const bool channels_last =
      x.rank() >= 4 && !x.is_contiguous() && x.strides() == channels_last_strides(x.shape());
  return channels_last ? channels_last_strides(shape) : contiguous_strides(shape);
}

PoolCall call_of(Pool op, const PoolOptions& options) {
  PoolCall call;
  call.op = op;
  call.kernel = options.kernel;
  call.stride = options.stride;
  call.padding = options.padding;
  return call;
}

// One pooling with its backward; max pooling saves the indices of the maxima.
Tensor pool(Pool op, const Tensor& x, const PoolOptions& options, const Shape& shape) {
  Session& session = x.session();
  Recording tape(session, "pool", {&x});
  tape.save(x);
  Tensor out = session.empty_strided(shape, strides_like(x, shape), x.dtype());
  Tensor indices;
  if (op == Pool::kMax) indices = session.empty_strided(shape, out.strides(), DType::kInt64);
  tape.save(indices);
  if (session.computes()) {
    PoolCall call = call_of(op, options);
    call.x = x.operand();
    call.y = out.operand();
    call.indices = indices.operand();
    session.device().run(call);
  }
  tape.finish(out, [op, options](Backward& b) {
    const Tensor saved_x = b.saved(0);
    const Tensor saved_indices = b.saved(1);
    Tensor dx = b.session().empty_strided(saved_x.shape(), strides_like(saved_x, saved_x.shape()),
                                          saved_x.dtype());
    if (b.session().computes()) {
      PoolCall call = call_of(op, options);
      call.backward = true;
      call.x = saved_x.operand();
      call.indices = saved_indices.operand();
      call.dy = b.gradient().operand();
      call.dx = dx.operand();
      b.session().device().run(call);
    }
    b.give(0, std::move(dx));
  });
  return out;
}

}  // namespace

Tensor max_pool(const Tensor& x, const PoolOptions& options) {
  return pool(Pool::kMax, x, options, pooled_shape(x.shape(), options));
}

Tensor average_pool(const Tensor& x, const PoolOptions& options) {
  return pool(Pool::kAverage, x, options, pooled_shape(x.shape(), options));
}

Tensor adaptive_average_pool(const Tensor& x, const Shape& size) {
  const bool to_one = std::all_of(size.begin(), size.end(), [](std::int64_t s) { return s == 1; });
  if (to_one && size.rank() == 2) return mean(x, {-1, -2}, true);
  if (to_one && size.rank() == 1) return mean(x, {-1}, true);
  Shape shape = x.shape();
  for (int s = 0; s < size.rank(); ++s) shape[x.rank() - size.rank() + s] = size[s];
  return pool(Pool::kAdaptiveAverage, x, {}, shape);
}

Tensor upsample(const Tensor& input, UpsampleMode mode, const Shape& size) {
  Session& session = input.session();
  const Tensor x = autocast_to_fp32(input);
  Recording tape(session, "upsample", {&x});
  Shape shape = x.shape();
  for (int s = 0; s < size.rank(); ++s) shape[x.rank() - size.rank() + s] = size[s];
  Tensor out = session.empty_strided(shape, strides_like(x, shape), x.dtype());
  const Upsample op = mode == UpsampleMode::kNearest ? Upsample::kNearest : Upsample::kBilinear;
  if (session.computes()) session.device().run(UpsampleCall{op, false, x.operand(), out.operand()});
  tape.finish(out, [op, from = x.shape()](Backward& b) {
    Tensor dx =
        b.session().empty_strided(from, strides_like(b.gradient(), from), b.gradient().dtype());
    if (b.session().computes()) {
      b.session().device().run(UpsampleCall{op, true, b.gradient().operand(), dx.operand()});
    }
    b.give(0, std::move(dx));
  });
  return out;
}

Tensor pixel_shuffle(const Tensor& x, std::int64_t factor) {
  const std::int64_t n = x.size(0);
  const std::int64_t c = x.size(1) / (factor * factor);
  const std::int64_t h = x.size(2);
  const std::int64_t w = x.size(3);
  const Tensor split = reshape(x, {n, c, factor, factor, h, w});
  const Tensor moved = permute(split, {0, 1, 4, 2, 5, 3});
  return reshape(clone(moved), {n, c, h * factor, w * factor});
}

}  // namespace memfathom
