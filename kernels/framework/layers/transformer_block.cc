#include "kernels/framework/layers/transformer_block.h"

#include <array>
#include <utility>
#include <vector>

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

Tensor scaled_and_shifted(const Tensor& x, const Tensor& scale, const Tensor& shift) {
  Tensor factor = add_scalar(unsqueeze(scale, 1), 1);
  factor = mul(x, factor);
  return add(factor, unsqueeze(shift, 1));
}

}  // namespace

std::optional<BlockStyle> parse_block_style(std::string_view name) {
  return enum_from_name<BlockStyle>(name);
}

TransformerBlock::TransformerBlock(Builder& builder, const TransformerBlockOptions& options)
    : options_(options) {
  const std::int64_t hidden = options.hidden;
  if (options.style == BlockStyle::kTorch) {
    const PathScope scope(builder, "self_attn");
    multihead_ = make_multihead_attention(builder, hidden, options.heads);
    multihead_.dropout = options.dropout;
    multihead_.implementation = options.implementation;
  } else {
    const bool causal = options.style == BlockStyle::kGpt2 || options.style == BlockStyle::kLlama;
    attention_ = make_self_attention(
        builder, {hidden, options.heads, options.kv_heads, options.implementation, causal,
                  options.style != BlockStyle::kLlama, options.dropout});
  }
  if (options.style == BlockStyle::kLlama) {
    gated_mlp_ = make_gated_unit(builder, hidden, options.inner, Activation::kSilu);
    rms_norms_[0] = make_rms_norm(builder, "input_layernorm", hidden);
    rms_norms_[1] = make_rms_norm(builder, "post_attention_layernorm", hidden);
    return;
  }
  mlp_ = make_mlp(builder, hidden, options.inner, options.activation);
  if (options.style == BlockStyle::kDit) {
    // Norms without parameters; constant weights of ones are not stored.
    modulation_ = make_linear(builder, "adaLN_modulation", hidden, 6 * hidden);
    return;
  }
  norms_[0] = make_layer_norm(builder, "norm1", hidden);
  norms_[1] = make_layer_norm(builder, "norm2", hidden);
}

Tensor TransformerBlock::operator()(const Tensor& x) const {
  switch (options_.style) {
    case BlockStyle::kBert: return post_norm(x);
    case BlockStyle::kDit: return modulated(x);
    case BlockStyle::kTorch: return torch_layer(x);
    case BlockStyle::kGpt2:
    case BlockStyle::kLlama:
    case BlockStyle::kVit: break;
  }
  return pre_norm(x);
}

Tensor TransformerBlock::normed(int which, const Tensor& x) const {
  return options_.style == BlockStyle::kLlama ? rms_norms_[which](x) : norms_[which](x);
}

Tensor TransformerBlock::attend(const Tensor& x) const {
  return dropout(attention_(x), options_.dropout);
}

Tensor TransformerBlock::feed_forward(const Tensor& x) const {
  if (options_.style == BlockStyle::kLlama) return gated_mlp_(x);
  return dropout(mlp_(x), options_.dropout);
}

Tensor TransformerBlock::pre_norm(const Tensor& x) const {
  Tensor t = normed(0, x);
  t = attend(t);
  const Tensor residual = add(x, t);
  t = normed(1, residual);
  t = feed_forward(t);
  return add(residual, t);
}

Tensor TransformerBlock::post_norm(const Tensor& x) const {
  Tensor t = attend(x);
  t = add(t, x);
  const Tensor attended = norms_[0](t);
  t = feed_forward(attended);
  t = add(t, attended);
  return norms_[1](t);
}

// adaLN-Zero: uses the mean of the sequence as the condition, because a stack has one input.
Tensor TransformerBlock::modulated(const Tensor& x) const {
  Tensor condition = mean(x, {1}, false);
  condition = activate(Activation::kSilu, condition);
  const std::vector<Tensor> parts = chunk(modulation_(condition), 6, 1);
  Tensor t = layer_norm(x, {}, {}, 1e-6);
  t = scaled_and_shifted(t, parts[1], parts[0]);
  t = attention_(t);
  t = mul(unsqueeze(parts[2], 1), t);
  const Tensor residual = add(x, t);
  t = layer_norm(residual, {}, {}, 1e-6);
  t = scaled_and_shifted(t, parts[4], parts[3]);
  t = mlp_(t);
  t = mul(unsqueeze(parts[5], 1), t);
  return add(residual, t);
}

Tensor TransformerBlock::torch_layer(const Tensor& x) const {
  // Both rebind their argument to their result, so a norm passed to them is freed before the
  // dropout.
  const auto attend_part = [&](Tensor input) {
    input = multihead_(input);
    Tensor dropped = dropout(input, options_.dropout);
    input.reset();  // the caller would free it only after the sum
    return dropped;
  };
  const auto feed_part = [&](Tensor input) {
    Tensor t = mlp_.up(input);
    t = activate(mlp_.activation, t);
    t = dropout(t, options_.dropout);
    t = mlp_.down(t);
    input = std::move(t);
    Tensor dropped = dropout(input, options_.dropout);
    input.reset();
    return dropped;
  };
  if (options_.norm_first) {
    const Tensor residual = add(x, attend_part(norms_[0](x)));
    return add(residual, feed_part(norms_[1](residual)));
  }
  Tensor t = attend_part(x);
  t = add(x, t);
  const Tensor attended = norms_[0](t);
  t = feed_part(attended);
  t = add(attended, t);
  return norms_[1](t);
}

}  // namespace memfathom
