#include "estimator/models/blocks/attention.h"

#include <array>
#include <utility>

#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {
namespace {

// Scores live through a cast that is in the same statement as the softmax, not through one after
// it.
Tensor softened(const AttentionStyle& style, Tensor scores, const Tensor& q, const Tensor& v) {
  if (style.softmax_in_fp32) {
    const Tensor wide = softmax_fp32(scores);
    return to_dtype(wide, q.dtype());
  }
  const Tensor weights = softmax(scores);
  scores.reset();
  return style.weights_in_values_type ? to_dtype(weights, v.dtype()) : weights;
}

// x - x.max(-1, keepdim=True).values; the maximum's gradient is scattered into zeros.
Tensor below_maximum(const Tensor& x) {
  Session& session = x.session();
  Recording tape(session, "max", {&x});
  Shape shape = x.shape();
  shape[-1] = 1;
  Tensor largest = session.empty(shape, x.dtype());
  const Tensor places = session.empty(shape, DType::kInt64);
  tape.save(places);
  tape.finish(largest, [from = x.shape(), dtype = x.dtype()](Backward& b) {
    const Tensor kept = b.saved(0);
    b.give(0, b.session().zeros(from, dtype));
  });
  return sub(x, largest);
}

// torch.max(x, least), least being a scalar: maximum() keeps x, and its backward pass is
// where(x == least, grad / 2, grad).masked_fill_(x < least, 0).
Tensor raised(const Tensor& x) {
  Session& session = x.session();
  Recording tape(session, "maximum", {&x});
  tape.save(x);
  Tensor result = session.empty(x.shape(), x.dtype());
  tape.finish(result, [shape = x.shape(), dtype = x.dtype()](Backward& b) {
    const Tensor compared = b.saved(0);
    Tensor given;
    {
      const Tensor equal = b.session().empty(shape, DType::kBool);
      const Tensor half = b.session().empty(shape, dtype);
      given = b.session().empty(shape, dtype);
    }
    { const Tensor below = b.session().empty(shape, DType::kBool); }
    b.give(0, std::move(given));
  });
  return result;
}

Tensor softened_with_sinks(const Tensor& sinks, const Tensor& scores) {
  const Shape column{scores.size(0), scores.size(1), scores.size(2), 1};
  const Tensor own = expand(view(sinks, {1, scores.size(1), 1, 1}), column);
  const Tensor parts[] = {scores, own};
  Tensor combined = cat(parts, -1);
  combined = below_maximum(combined);
  const Tensor probabilities = softmax(combined);
  return slice(probabilities, -1, 0, scores.size(-1));
}

Attended attend_eagerly(const AttentionStyle& style, const Tensor& q, const Tensor& k,
                        const Tensor& v, const Tensor& mask) {
  const std::int64_t groups = q.size(1) / k.size(1);
  const Tensor keys = repeat_interleave_heads(k, groups);
  const Tensor values = repeat_interleave_heads(v, groups);
  Tensor weights = matmul(q, transpose(keys, 2, 3));
  weights = mul_scalar(weights, style.scale);
  if (style.softcap > 0) {
    weights = div_scalar(weights, style.softcap);
    weights = activate(Activation::kTanh, weights);
    weights = mul_scalar(weights, style.softcap);
  }
  if (mask) weights = add(weights, mask);
  if (mask && style.raises_scores) weights = raised(weights);
  if (style.sinks) {
    weights = softened_with_sinks(style.sinks, weights);
    weights = to_dtype(dropout(weights, style.dropout), v.dtype());
  } else {
    weights = softened(style, std::move(weights), q, v);
    weights = dropout(weights, style.dropout);
  }
  Tensor output = matmul(weights, values);
  output = transpose(output, 1, 2);
  output = contiguous(output);
  return {output, weights};
}

}  // namespace

Attended attend(const AttentionStyle& style, const Tensor& q, const Tensor& k_in,
                const Tensor& v_in, const Tensor& mask) {
  if (style.implementation == AttentionImplementation::kEager)
    return attend_eagerly(style, q, k_in, v_in, mask);
  Tensor k = k_in;
  Tensor v = v_in;
  const std::int64_t groups = q.size(1) / k.size(1);
  // transformers' use_gqa_in_sdpa: grouped kernels only without a mask, and where PyTorch has them.
  const bool repeats =
      groups > 1 && (mask || q.size(3) > 256 || !q.session().policy().attention_has_gqa);
  if (repeats) {
    k = repeat_interleave_heads(k, groups);
    v = repeat_interleave_heads(v, groups);
  }
  AttentionOptions options;
  options.implementation = style.implementation;
  options.causal = style.causal && q.size(2) > 1 && !mask;
  options.dropout = q.session().training ? style.dropout : 0;
  options.scale = style.scale;
  options.mask = mask;
  // The flash library's own call pads values that are narrower than the keys.
  const std::int64_t narrower = q.size(3) - v.size(3);
  const std::int64_t value_size = v.size(3);
  const bool padded = narrower > 0 && style.implementation == AttentionImplementation::kFlash;
  if (padded) v = pad(v, std::array<std::int64_t, 2>{0, narrower});
  Tensor output = scaled_dot_product_attention(q, k, v, options);
  if (padded) output = slice(output, -1, 0, value_size);
  output = transpose(output, 1, 2);
  output = contiguous(output);
  return {output, {}};
}

Tensor split_heads(const Tensor& x, std::int64_t head_size) {
  return transpose(view(x, {x.size(0), x.size(1), -1, head_size}), 1, 2);
}

Tensor merge_heads(const Tensor& x) { return reshape(x, {x.size(0), x.size(1), -1}); }

}  // namespace memfathom
