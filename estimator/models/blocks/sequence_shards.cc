#include "estimator/models/blocks/sequence_shards.h"

#include <utility>

#include "kernels/framework/ops/autocast.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

Shape with_positions(const Tensor& x, std::int64_t positions) {
  Shape shape = x.shape();
  shape[1] = positions;
  return shape;
}

// The communication itself: a new tensor with other positions.
Tensor exchanged(const Tensor& x, std::int64_t positions, const char* name) {
  Session& session = x.session();
  Recording tape(session, name, {&x});
  Tensor out = session.empty(with_positions(x, positions), x.dtype());
  tape.finish(out, [shape = x.shape(), dtype = x.dtype()](Backward& b) {
    b.give(0, b.session().empty(shape, dtype));
  });
  return out;
}

}  // namespace

Tensor gather_positions(const Tensor& x, std::int64_t shards) {
  return shards == 1 ? x : exchanged(x, x.size(1) * shards, "AllGather");
}

Tensor scatter_positions(const Tensor& x, std::int64_t shards) {
  return shards == 1 ? x : exchanged(x, x.size(1) / shards, "ReduceScatter");
}

Tensor linear_over_shards(const Linear& layer, const Tensor& input, std::int64_t shards) {
  if (shards == 1) return layer(input);
  if (layer.lora || layer.quantized || layer.transposed)
    return layer(gather_positions(input, shards));
  Session& session = input.session();
  const Tensor bias = autocast_to_lower(layer.bias);
  const Tensor weight = autocast_to_lower(layer.weight);
  const Tensor x = autocast_to_lower(input);
  Recording tape(session, "LinearOverShards", {&x, &weight, &bias});
  tape.save(tape.needs(1) ? x : Tensor());
  tape.save(tape.needs(0) ? weight : Tensor());
  const std::int64_t positions = x.size(1) * shards;
  Shape shape = with_positions(x, positions);
  const Tensor whole = session.empty(shape, x.dtype());
  shape[-1] = weight.size(0);
  Tensor out = session.empty(shape, x.dtype());
  const Tensor workspace = session.before_gemm(bias.defined());
  tape.finish(out, [kept = x.shape(), positions, weights = weight.shape(),
                    biases = bias ? bias.shape() : Shape{}, dtype = x.dtype()](Backward& b) {
    Session& own = b.session();
    const Tensor part = b.saved(0);
    const Tensor matrix = b.saved(1);
    Shape all = kept;
    all[1] = positions;
    Tensor dx;
    if (b.needs(0)) {
      const Tensor whole_gradient = own.empty(all, dtype);
      const Tensor held = own.before_gemm(false);
      dx = own.empty(kept, dtype);
    }
    if (b.needs(1)) {
      const Tensor gathered = own.empty(all, dtype);
      const Tensor held = own.before_gemm(false);
      b.give(1, own.empty(weights, dtype));
    }
    if (b.needs(2)) b.give(2, own.empty(biases, dtype));
    if (b.needs(0)) b.give(0, std::move(dx));
  });
  return out;
}

}  // namespace memfathom
