#include "estimator/models/blocks/unet_blocks.h"

#include <utility>
#include <vector>

#include "estimator/models/blocks/checkpointed.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/pool.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

GroupNorm make_norm(Builder& builder, std::string_view name, std::int64_t groups,
                    std::int64_t features, double eps) {
  GroupNorm norm = make_group_norm(builder, name, groups, features);
  norm.eps = eps;
  return norm;
}

}  // namespace

Tensor ResnetBlock::operator()(const Tensor& input, const Tensor& temb) const {
  Tensor residual = input;
  Tensor hidden = norm1(input);
  hidden = activate(activation, hidden);
  hidden = conv1(hidden);
  Tensor step;
  if (temb) {
    step = activate(activation, temb);
    step = time(step);
    step = unsqueeze(unsqueeze(step, 2), 3);
  }
  if (step && scale_shift) {
    const std::vector<Tensor> parts = chunk(step, 2, 1);
    hidden = norm2(hidden);
    {
      const Tensor factor = add_scalar(parts[0], 1);
      hidden = mul(hidden, factor);
    }
    hidden = add(hidden, parts[1]);
  } else {
    if (step) hidden = add(hidden, step);
    hidden = norm2(hidden);
  }
  hidden = activate(activation, hidden);
  hidden = memfathom::dropout(hidden, dropout);
  hidden = conv2(hidden);
  if (shortcut) {
    if (residual.session().training) residual = contiguous(residual);
    residual = shortcut(residual);
  }
  const Tensor sum = add(residual, hidden);
  return div_scalar(sum, 1);
}

std::shared_ptr<const ResnetBlock> make_resnet_block(const ImageContext& context,
                                                     const UNetStyle& style, std::int64_t in,
                                                     std::int64_t out) {
  auto block = std::make_shared<ResnetBlock>();
  Builder& builder = context.builder;
  block->activation = style.activation;
  block->dropout = style.dropout;
  block->norm1 = make_norm(builder, "norm1", style.groups, in, style.eps);
  block->conv1 =
      conv_layer(context, "conv1", {.in = in, .out = out, .kernel = 3, .padding = 1, .bias = true});
  block->scale_shift = style.scale_shift;
  if (style.time_size > 0)
    block->time =
        make_linear(builder, "time_emb_proj", style.time_size, style.scale_shift ? 2 * out : out);
  block->norm2 = make_norm(builder, "norm2", style.groups, out, style.eps);
  block->conv2 = conv_layer(context, "conv2",
                            {.in = out, .out = out, .kernel = 3, .padding = 1, .bias = true});
  if (in != out)
    block->shortcut =
        conv_layer(context, "conv_shortcut", {.in = in, .out = out, .kernel = 1, .bias = true});
  return block;
}

Layer make_downsample(const ImageContext& context, std::int64_t channels, std::int64_t padding) {
  Layer conv = conv_layer(context, "downsamplers.0.conv",
                          {.in = channels,
                           .out = channels,
                           .kernel = 3,
                           .stride = 2,
                           .padding = padding,
                           .bias = true});
  if (padding > 0) return conv;
  return [conv](const Tensor& x) {
    static constexpr std::int64_t kPad[] = {0, 1, 0, 1};
    const Tensor wide = pad(x, kPad);
    return conv(wide);
  };
}

Layer make_upsample(const ImageContext& context, std::int64_t channels) {
  const Layer conv =
      conv_layer(context, "upsamplers.0.conv",
                 {.in = channels, .out = channels, .kernel = 3, .padding = 1, .bias = true});
  return [conv](const Tensor& x) {
    const Tensor wide = upsample(x, UpsampleMode::kNearest, {2 * x.size(2), 2 * x.size(3)});
    return conv(wide);
  };
}

Tensor DiffusionAttention::operator()(const Tensor& input, const Tensor& context) const {
  Tensor hidden = input;
  if (on_image) {
    hidden = transpose(reshape(hidden, {input.size(0), input.size(1), -1}), 1, 2);
    hidden = transpose(norm(transpose(hidden, 1, 2)), 1, 2);
  }
  const Tensor source = context ? context : hidden;
  const std::int64_t batch = input.size(0);
  Tensor query = q(hidden);
  Tensor key = k(source);
  Tensor value = v(source);
  const std::int64_t head_size = query.size(2) / heads;
  const auto in_heads = [&](const Tensor& x) {
    return transpose(view(x, {batch, -1, heads, head_size}), 1, 2);
  };
  query = in_heads(query);
  key = in_heads(key);
  value = in_heads(value);
  AttentionOptions options;
  options.implementation = implementation;
  options.causal = false;
  hidden = scaled_dot_product_attention(query, key, value, options);
  hidden = reshape(transpose(hidden, 1, 2), {batch, -1, heads * head_size});
  hidden = out(hidden);
  if (on_image) {
    hidden = reshape(transpose(hidden, 1, 2), input.shape());
    hidden = add(hidden, input);
  }
  return div_scalar(hidden, 1);
}

DiffusionAttention make_image_attention(const ImageContext& context, const UNetStyle& style,
                                        std::int64_t channels, std::int64_t heads) {
  Builder& builder = context.builder;
  DiffusionAttention attention;
  attention.on_image = true;
  attention.heads = heads;
  attention.implementation = context.settings.attention;
  attention.norm = make_norm(builder, "group_norm", style.groups, channels, style.eps);
  attention.q = make_linear(builder, "to_q", channels, channels);
  attention.k = make_linear(builder, "to_k", channels, channels);
  attention.v = make_linear(builder, "to_v", channels, channels);
  attention.out = make_linear(builder, "to_out.0", channels, channels);
  return attention;
}

SpatialTransformer::SpatialTransformer(const ImageContext& context, const UNetStyle& style,
                                       const SpatialTransformerConfig& cfg)
    : linear_(cfg.linear_projection), settings_(context.settings) {
  Builder& builder = context.builder;
  const std::int64_t width = cfg.channels;
  norm_ = make_norm(builder, "norm", style.groups, width, 1e-6);
  const ConvSpec projection{.in = width, .out = width, .kernel = 1, .bias = true};
  if (linear_) {
    linear_in_ = make_linear(builder, "proj_in", width, width);
  } else {
    conv_in_ = conv_layer(context, "proj_in", projection);
  }
  const auto attention = [&](std::string_view name, std::int64_t source) {
    const PathScope scope(builder, name);
    DiffusionAttention made;
    made.heads = cfg.heads;
    made.implementation = context.settings.attention;
    made.q = make_linear(builder, "to_q", width, width, {.bias = false});
    made.k = make_linear(builder, "to_k", source, width, {.bias = false});
    made.v = make_linear(builder, "to_v", source, width, {.bias = false});
    made.out = make_linear(builder, "to_out.0", width, width);
    return made;
  };
  for (std::int64_t i = 0; i < cfg.layers; ++i) {
    const PathScope scope(builder, "transformer_blocks", i);
    auto block = std::make_shared<UNetBlock>();
    block->norm1 = make_layer_norm(builder, "norm1", width);
    block->self = attention("attn1", width);
    block->norm2 = make_layer_norm(builder, "norm2", width);
    block->cross = attention("attn2", cfg.cross_size);
    block->norm3 = make_layer_norm(builder, "norm3", width);
    block->up = make_linear(builder, "ff.net.0.proj", width, 8 * width);
    block->down = make_linear(builder, "ff.net.2", 4 * width, width);
    blocks_.push_back(std::move(block));
  }
  if (linear_) {
    linear_out_ = make_linear(builder, "proj_out", width, width);
  } else {
    conv_out_ = conv_layer(context, "proj_out", projection);
  }
}

Tensor SpatialTransformer::UNetBlock::operator()(const Tensor& input, const Tensor& text) const {
  Tensor normed = norm1(input);
  Tensor change = self(normed);
  Tensor hidden = add(change, input);
  normed = norm2(hidden);
  change = cross(normed, text);
  hidden = add(change, hidden);
  normed = norm3(hidden);
  {
    Tensor wide = up(normed);
    const std::vector<Tensor> halves = chunk(wide, 2, -1);
    wide.reset();
    Tensor gate = activate(Activation::kGelu, halves[1]);
    gate = mul(halves[0], gate);
    change = down(gate);
  }
  return add(change, hidden);
}

Tensor SpatialTransformer::operator()(const Tensor& input, const Tensor& text) const {
  const std::int64_t batch = input.size(0), channels = input.size(1), height = input.size(2),
                     width = input.size(3);
  Tensor hidden = norm_(input);
  if (!linear_) hidden = conv_in_(hidden);
  hidden = reshape(permute(hidden, {0, 2, 3, 1}), {batch, height * width, channels});
  if (linear_) hidden = linear_in_(hidden);
  for (const std::shared_ptr<const UNetBlock>& block : blocks_) {
    const Tensor inputs[] = {hidden, text};
    const CheckpointedMultiFunction segment = [block](std::span<const Tensor> given) {
      return std::vector<Tensor>{(*block)(given[0], given[1])};
    };
    hidden = run_checkpointed(settings_, segment, inputs).front();
  }
  if (linear_) hidden = linear_out_(hidden);
  hidden = contiguous(permute(reshape(hidden, {batch, height, width, channels}), {0, 3, 1, 2}));
  if (!linear_) hidden = conv_out_(hidden);
  return add(hidden, input);
}

}  // namespace memfathom
