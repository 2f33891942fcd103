#include "kernels/framework/layers/self_attention.h"

#include <cmath>
#include <utility>

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

Tensor as_heads(const Tensor& x, std::int64_t head_size) {
  return transpose(view(x, {x.size(0), x.size(1), -1, head_size}), 1, 2);
}

// Eager attention: matmul, softmax in fp32, dropout, matmul. It is inlined in the layer's
// forward(), so the repeated keys and values and the weights live until that function returns.
Tensor eager_attention(const Tensor& q, Tensor& k, Tensor& v, Tensor& scores, std::int64_t groups,
                       double p) {
  {
    Tensor keys = repeat_interleave_heads(k, groups);
    Tensor values = repeat_interleave_heads(v, groups);
    k = std::move(keys);
    v = std::move(values);
  }
  scores = matmul(q, transpose(k, 2, 3));
  scores = mul_scalar(scores, 1 / std::sqrt(static_cast<double>(q.size(3))));
  {
    Tensor weights = softmax_fp32(scores);
    scores = to_dtype(weights, q.dtype());
  }
  Tensor dropped = dropout(scores, p);
  return matmul(dropped, v);
}

}  // namespace

Tensor SelfAttention::operator()(const Tensor& x) const {
  const std::int64_t head_size = x.size(2) / heads;
  const Tensor queries = as_heads(q(x), head_size);
  Tensor keys = as_heads(k(x), head_size);
  Tensor values = as_heads(v(x), head_size);
  const double p = x.session().training ? dropout : 0;
  Tensor scores;
  Tensor out;
  if (implementation == AttentionImplementation::kEager) {
    out = eager_attention(queries, keys, values, scores, heads / kv_heads, p);
  } else {
    AttentionOptions options;
    options.implementation = implementation;
    options.causal = causal;
    options.dropout = p;
    out = scaled_dot_product_attention(queries, keys, values, options);
  }
  return o(reshape(transpose(out, 1, 2), {x.size(0), x.size(1), -1}));
}

SelfAttention make_self_attention(Builder& builder, const SelfAttentionOptions& options) {
  SelfAttention layer;
  layer.heads = options.heads;
  layer.kv_heads = options.kv_heads;
  layer.implementation = options.implementation;
  layer.causal = options.causal;
  layer.dropout = options.dropout;
  const std::int64_t kv_size = options.hidden / options.heads * options.kv_heads;
  const LinearOptions linear{.bias = options.bias};
  layer.q = make_linear(builder, "q_proj", options.hidden, options.hidden, linear);
  layer.k = make_linear(builder, "k_proj", options.hidden, kv_size, linear);
  layer.v = make_linear(builder, "v_proj", options.hidden, kv_size, linear);
  layer.o = make_linear(builder, "o_proj", options.hidden, options.hidden, linear);
  return layer;
}

Tensor MultiheadAttention::operator()(const Tensor& x) const {
  const std::int64_t batch = x.size(0);
  const std::int64_t length = x.size(1);
  const std::int64_t hidden = x.size(2);
  const std::int64_t head_size = hidden / heads;
  const double p = x.session().training ? dropout : 0;
  // torch uses the layout [sequence, batch, hidden] internally.
  const Tensor turned = transpose(x, 0, 1);
  Tensor packed = linear(turned, in_weight, in_bias);
  packed = view(packed, {length, batch, 3, hidden});
  packed = contiguous(permute(packed, {2, 0, 1, 3}));
  const Tensor q = select(packed, 0, 0);
  const Tensor k = select(packed, 0, 1);
  const Tensor v = select(packed, 0, 2);
  const auto flat_heads = [&](const Tensor& t) {
    return transpose(view(t, {length, batch * heads, head_size}), 0, 1);
  };
  Tensor joined;
  if (need_weights) {
    const Tensor scaled = mul_scalar(flat_heads(q), 1 / std::sqrt(static_cast<double>(head_size)));
    Tensor weights = bmm(scaled, transpose(flat_heads(k), 1, 2));
    weights = softmax(weights);
    weights = memfathom::dropout(weights, p);
    Tensor attended = bmm(weights, flat_heads(v));
    joined = reshape(clone(transpose(attended, 0, 1)), {length * batch, hidden});
    attended.reset();  // torch rebinds this name to the joined heads
    const Tensor projected = out(joined);
    const Tensor average = mean(view(weights, {batch, heads, length, length}), {1}, false);
    return transpose(view(projected, {length, batch, hidden}), 0, 1);
  }
  const auto split_heads = [&](const Tensor& t) {
    return view(flat_heads(t), {batch, heads, length, head_size});
  };
  AttentionOptions options;
  options.implementation = implementation;
  options.causal = false;
  options.dropout = p;
  Tensor attended =
      scaled_dot_product_attention(split_heads(q), split_heads(k), split_heads(v), options);
  joined = view(contiguous(permute(attended, {2, 0, 1, 3})), {length * batch, hidden});
  attended.reset();
  const Tensor projected = out(joined);
  return transpose(view(projected, {length, batch, hidden}), 0, 1);
}

MultiheadAttention make_multihead_attention(Builder& builder, std::int64_t hidden,
                                            std::int64_t heads) {
  MultiheadAttention layer;
  layer.heads = heads;
  layer.in_weight = builder.parameter("in_proj_weight", {3 * hidden, hidden});
  layer.in_bias = builder.parameter("in_proj_bias", {3 * hidden});
  layer.out = make_linear(builder, "out_proj", hidden, hidden);
  return layer;
}

Tensor CoreAttention::operator()(const Tensor& qkv) const {
  const std::int64_t batch = qkv.size(0);
  const std::int64_t length = qkv.size(1);
  const Tensor parts = permute(view(qkv, {batch, length, 3, heads, -1}), {2, 0, 3, 1, 4});
  const std::vector<Tensor> heads_of = unbind(parts, 0);
  AttentionOptions options;
  options.implementation = implementation;
  options.dropout = qkv.session().training ? dropout : 0;
  if (padding_mask) options.mask = qkv.session().full({batch, 1, length, length}, DType::kBool, 1);
  options.causal = causal && !padding_mask;
  return scaled_dot_product_attention(heads_of[0], heads_of[1], heads_of[2], options);
}

}  // namespace memfathom
