// Vision transformers: timm's with one matrix for q, k and v, and torchvision's with
// nn.MultiheadAttention.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "estimator/models/families/vision/classifiers/classifiers.h"
#include "kernels/framework/layers/block_adapters.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/layers/self_attention.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr double kEps = 1e-6;

LayerNorm make_vit_norm(Builder& builder, std::string_view name, std::int64_t features) {
  LayerNorm norm = make_layer_norm(builder, name, features);
  norm.eps = kEps;
  return norm;
}

struct FusedAttention {
  Linear qkv, projection;
  std::int64_t heads = 1;
  AttentionImplementation implementation = AttentionImplementation::kAuto;

  Tensor operator()(const Tensor& input) const {
    const std::int64_t batch = input.size(0);
    const std::int64_t length = input.size(1);
    const std::int64_t head_size = input.size(2) / heads;
    const Tensor packed =
        permute(reshape(qkv(input), {batch, length, 3, heads, head_size}), {2, 0, 3, 1, 4});
    std::vector<Tensor> parts = unbind(packed, 0);
    Tensor x;
    Tensor weights;
    if (implementation == AttentionImplementation::kEager) {
      parts[0] = mul_scalar(parts[0], 1 / std::sqrt(static_cast<double>(head_size)));
      weights = matmul(parts[0], transpose(parts[1], 2, 3));
      weights = softmax(weights);
      x = matmul(weights, parts[2]);
    } else {
      AttentionOptions options;
      options.implementation = implementation;
      options.causal = false;
      x = scaled_dot_product_attention(parts[0], parts[1], parts[2], options);
    }
    x = reshape(transpose(x, 1, 2), {batch, length, -1});
    return projection(x);
  }
};

struct VitMlp {
  Linear up, down;

  Tensor operator()(const Tensor& input) const {
    Tensor x = up(input);
    x = activate(Activation::kGelu, x);
    return down(x);
  }
};

struct VitBlock {
  LayerNorm norm1, norm2;
  FusedAttention attention;
  VitMlp mlp;

  Tensor operator()(const Tensor& input) const {
    Tensor t = norm1(input);
    t = attention(t);
    const Tensor x = add(input, t);
    t.reset();
    t = norm2(x);
    t = mlp(t);
    return add(x, t);
  }
};

VitBlock make_vit_block(const ImageContext& context, const VitConfig& cfg) {
  Builder& builder = context.builder;
  VitBlock block;
  block.norm1 = make_vit_norm(builder, "norm1", cfg.width);
  {
    const PathScope scope(builder, "attn");
    block.attention.heads = cfg.heads;
    block.attention.implementation = context.settings.attention;
    block.attention.qkv = make_linear(builder, "qkv", cfg.width, 3 * cfg.width);
    block.attention.projection = make_linear(builder, "proj", cfg.width, cfg.width);
  }
  block.norm2 = make_vit_norm(builder, "norm2", cfg.width);
  const PathScope scope(builder, "mlp");
  block.mlp.up = make_linear(builder, "fc1", cfg.width, 4 * cfg.width);
  block.mlp.down = make_linear(builder, "fc2", 4 * cfg.width, cfg.width);
  return block;
}

struct EncoderBlock {
  LayerNorm norm1, norm2;
  MultiheadAttention attention;
  Linear up, down;
  double dropout = 0;

  Tensor operator()(const Tensor& input) const {
    Tensor x = norm1(input);
    x = attention(x);
    x = memfathom::dropout(x, dropout);
    x = add(x, input);
    Tensor y = norm2(x);
    y = mlp(y);
    return add(x, y);
  }

 private:
  Tensor mlp(const Tensor& input) const {
    Tensor x = up(input);
    x = activate(Activation::kGelu, x);
    x = memfathom::dropout(x, dropout);
    x = down(x);
    return memfathom::dropout(x, dropout);
  }
};

EncoderBlock make_encoder_block(const ImageContext& context, const VitConfig& cfg) {
  Builder& builder = context.builder;
  EncoderBlock block;
  block.dropout = context.dropout(0);
  block.norm1 = make_vit_norm(builder, "ln_1", cfg.width);
  {
    const PathScope scope(builder, "self_attention");
    block.attention = make_multihead_attention(builder, cfg.width, cfg.heads);
    block.attention.dropout = block.dropout;
    block.attention.implementation = context.settings.attention;
  }
  block.norm2 = make_vit_norm(builder, "ln_2", cfg.width);
  block.up = make_linear(builder, "mlp.0", cfg.width, 4 * cfg.width);
  block.down = make_linear(builder, "mlp.3", 4 * cfg.width, cfg.width);
  return block;
}

// [N, C, H, W] to [N, patches, width].
Tensor embedded(const Layer& patches, const Tensor& image) {
  const Tensor x = patches(image);
  return transpose(flatten(x, 2), 1, 2);
}

Tensor with_class_token(const Tensor& class_token, const Tensor& x) {
  const Tensor parts[] = {expand(class_token, {x.size(0), 1, x.size(2)}), x};
  return cat(parts, 1);
}

Tensor with_positions(const Tensor& class_token, const Tensor& positions, const Tensor& input) {
  const Tensor x = with_class_token(class_token, input);
  return add(x, positions);
}

// The block with its bottleneck adapters, where the job has any.
Layer adapted_layer(const ImageContext& context, Layer block) {
  if (!context.settings.adapters) return block;
  const auto own = std::make_shared<const Layer>(std::move(block));
  return [own, adapters = context.settings.adapters](const Tensor& x) {
    const Tensor output = (*own)(x);
    return adapters->after(own.get(), output);
  };
}

template <typename MakeBlock>
std::vector<Layer> make_blocks(const ImageContext& context, const VitConfig& cfg,
                               std::string_view name, MakeBlock make_block) {
  std::vector<Layer> blocks;
  for (std::int64_t i = 0; i < cfg.depth; ++i) {
    const PathScope scope(context.builder, name, i);
    const BlockScope block(context.builder, i, cfg.depth, cfg.width);
    blocks.push_back(block_layer(context, adapted_layer(context, make_block(context, cfg))));
  }
  return blocks;
}

std::int64_t patch_count(const VitConfig& cfg) {
  const std::int64_t side = cfg.image_size / cfg.patch;
  return side * side;
}

}  // namespace

Layer make_vit(const ImageContext& context, std::int64_t classes, const VitConfig& cfg) {
  Builder& builder = context.builder;
  const Tensor class_token = builder.parameter("cls_token", {1, 1, cfg.width});
  const Tensor positions = builder.parameter("pos_embed", {1, patch_count(cfg) + 1, cfg.width});
  const Layer patches = conv_layer(
      context, "patch_embed.proj",
      {.in = 3, .out = cfg.width, .kernel = cfg.patch, .stride = cfg.patch, .bias = true});
  const std::vector<Layer> blocks = make_blocks(context, cfg, "blocks", make_vit_block);
  const LayerNorm norm = make_vit_norm(builder, "norm", cfg.width);
  const HeadScope head_scope(builder);
  const Linear head = make_linear(builder, "head", cfg.width, classes, {.head = true});
  return [=](const Tensor& image) {
    Tensor x = embedded(patches, image);
    x = with_positions(class_token, positions, x);
    x = run_layers(blocks, x);
    x = norm(x);
    x = select(x, 1, 0);
    return head(x);
  };
}

Layer make_torchvision_vit(const ImageContext& context, std::int64_t classes,
                           const VitConfig& cfg) {
  Builder& builder = context.builder;
  const Tensor class_token = builder.parameter("class_token", {1, 1, cfg.width});
  const Layer patches = conv_layer(
      context, "conv_proj",
      {.in = 3, .out = cfg.width, .kernel = cfg.patch, .stride = cfg.patch, .bias = true});
  const Tensor positions =
      builder.parameter("encoder.pos_embedding", {1, patch_count(cfg) + 1, cfg.width});
  const std::vector<Layer> blocks = make_blocks(context, cfg, "encoder.layers", make_encoder_block);
  const LayerNorm norm = make_vit_norm(builder, "encoder.ln", cfg.width);
  const HeadScope head_scope(builder);
  const Linear head = make_linear(builder, "heads.head", cfg.width, classes, {.head = true});
  const double p = context.dropout(0);
  return [=](const Tensor& image) {
    Tensor x = embedded(patches, image);
    x = with_class_token(class_token, x);
    {
      Tensor input = add(x, positions);
      input = dropout(input, p);
      input = run_layers(blocks, input);
      x = norm(input);
    }
    x = select(x, 1, 0);
    return head(x);
  };
}

}  // namespace memfathom
