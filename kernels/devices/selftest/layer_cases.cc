#include <memory>
#include <utility>

#include "kernels/devices/selftest/layers.h"
#include "kernels/framework/layers/feed_forward.h"
#include "kernels/framework/layers/language_head.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/layers/spectral.h"
#include "kernels/framework/layers/transformer_block.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/convolution.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/pool.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/checkpoint.h"

namespace memfathom::selftest {
namespace {

// Real GPUs round fp32 operands to TF32 in convolutions, as PyTorch allows, and norms amplify the
// error: with truncated operands (tests/kernels/devices/cuda/agreement_test.cc) the bottleneck
// differs by 0.015, the U-Net's blocks by 0.054.
constexpr double kConvolutions = 3e-2;
constexpr double kManyConvolutions = 1e-1;
constexpr double kSixteenBits = 5e-2;

template <typename Made>
TestLayer shared(Made made) {
  return [layer = std::make_shared<Made>(std::move(made))](const Tensor& x) { return (*layer)(x); };
}

TestLayer transformer(Builder& builder, BlockStyle style, std::int64_t heads,
                      std::int64_t kv_heads) {
  TransformerBlockOptions options;
  options.style = style;
  options.hidden = 16;
  options.heads = heads;
  options.kv_heads = kv_heads;
  options.inner = 24;
  return shared(TransformerBlock(builder, options));
}

LayerCase transformer_case(std::string name, BlockStyle style, std::int64_t kv_heads = 4) {
  return {std::move(name), {2, 5, 16}, [=](Builder& builder) {
            return transformer(builder, style, 4, kv_heads);
          }};
}

// 16-bit heads of size 8: runs on cuDNN's attention on GPUs that support it.
LayerCase sixteen_bit_case(std::string name, DType dtype, std::int64_t kv_heads) {
  return {std::move(name),
          {2, 5, 16},
          [=](Builder& builder) { return transformer(builder, BlockStyle::kLlama, 2, kv_heads); },
          kSixteenBits,
          dtype};
}

LayerCase checkpoint_case(std::string name, CheckpointPolicy keep) {
  return {std::move(name), {2, 5, 16}, [keep](Builder& builder) -> TestLayer {
            const TestLayer block = transformer(builder, BlockStyle::kLlama, 4, 2);
            return [=](const Tensor& x) { return checkpoint(block, x, keep); };
          }};
}

LayerCase operator_case(std::string name, FnoStyle style, const Shape& input,
                        const std::vector<std::int64_t>& modes) {
  return {std::move(name), input,
          [style, modes](Builder& builder) {
            return shared(FnoBlock(builder, {style, 4, modes, false, false}));
          },
          kConvolutions};
}

struct Conv {
  Tensor weight, bias;
  std::int64_t padding = 0;

  Tensor operator()(const Tensor& x) const {
    return convolution(x, weight, bias, {{1, 1}, {padding, padding}, {1, 1}, {}, 1, false});
  }
};

Conv make_conv(Builder& builder, std::string_view name, std::int64_t in, std::int64_t out,
               std::int64_t kernel, bool bias) {
  const PathScope scope(builder, name);
  const Tensor weight = builder.parameter("weight", {out, in, kernel, kernel});
  return {weight, bias ? builder.parameter("bias", {out}) : Tensor(), kernel / 2};
}

TestLayer conv_bn_relu_pool(Builder& builder) {
  const Conv conv = make_conv(builder, "conv", 3, 4, 3, true);
  const BatchNorm norm = make_batch_norm(builder, "norm", 4);
  return [=](const Tensor& x) {
    const Tensor y = activate(Activation::kRelu, norm(conv(x)));
    return max_pool(y, {{2, 2}, {2, 2}, {0, 0}, false});
  };
}

// ResNet's bottleneck: 1x1, 3x3, 1x1, each with a norm, and a projected shortcut.
TestLayer bottleneck(Builder& builder) {
  const Conv reduce = make_conv(builder, "conv1", 4, 2, 1, false);
  const BatchNorm norm1 = make_batch_norm(builder, "bn1", 2);
  const Conv conv = make_conv(builder, "conv2", 2, 2, 3, false);
  const BatchNorm norm2 = make_batch_norm(builder, "bn2", 2);
  const Conv expand_out = make_conv(builder, "conv3", 2, 8, 1, false);
  const BatchNorm norm3 = make_batch_norm(builder, "bn3", 8);
  const Conv shortcut = make_conv(builder, "downsample", 4, 8, 1, false);
  return [=](const Tensor& x) {
    Tensor t = activate(Activation::kRelu, norm1(reduce(x)));
    t = activate(Activation::kRelu, norm2(conv(t)));
    t = norm3(expand_out(t));
    return activate(Activation::kRelu, add(t, shortcut(x)));
  };
}

// A diffusion U-Net's block: group norm, SiLU and convolution twice, then attention over the
// pixels, whose result is channels-last; a second such block gets that layout as its input.
TestLayer residual_block(Builder& builder, std::string_view name) {
  const PathScope scope(builder, name);
  const GroupNorm norm1 = make_group_norm(builder, "norm1", 2, 8);
  const Conv conv1 = make_conv(builder, "conv1", 8, 8, 3, true);
  const GroupNorm norm2 = make_group_norm(builder, "norm2", 2, 8);
  const Conv conv2 = make_conv(builder, "conv2", 8, 8, 3, true);
  const SelfAttention attention =
      make_self_attention(builder, {8, 2, 2, AttentionImplementation::kAuto, false, true, 0});
  return [=](const Tensor& x) {
    Tensor t = conv1(activate(Activation::kSilu, norm1(x)));
    t = conv2(activate(Activation::kSilu, norm2(t)));
    const Tensor residual = add(x, t);
    const Shape shape = residual.shape();
    t = transpose(reshape(residual, {shape[0], shape[1], shape[2] * shape[3]}), 1, 2);
    t = reshape(transpose(attention(t), 1, 2), shape);
    return add(t, residual);
  };
}

TestLayer unet_blocks(Builder& builder) {
  const TestLayer first = residual_block(builder, "first");
  const TestLayer second = residual_block(builder, "second");
  return [=](const Tensor& x) { return second(first(x)); };
}

Tensor tokens(Session& session, const Shape& shape, std::int64_t token) {
  return session.full(shape, DType::kInt64, static_cast<double>(token));
}

// A language model's input and output: the embedding is added to the input, the head is tied to its
// table.
TestLayer embedding_and_head(Builder& builder) {
  const Tensor table = builder.parameter("wte", {7, 16});
  const LayerNorm norm = make_layer_norm(builder, "norm", 16);
  return [=](const Tensor& x) {
    const Tensor hidden = norm(add(x, embedding(table, tokens(x.session(), {2, 5}, 3))));
    const Linear head{table, {}, false, nullptr, nullptr};
    const Tensor logits = reshape(head(hidden), {10, 7});
    return cross_entropy(logits, tokens(x.session(), {10}, 2), 0.1);
  };
}

// The same head in chunks of rows of unequal length, with gradients computed in the forward pass.
TestLayer chunked_head(Builder& builder) {
  const Tensor table = builder.parameter("lm_head", {40, 16});
  return [=](const Tensor& x) { return fused_head_loss(x, table, tokens(x.session(), {11}, 3)); };
}

}  // namespace

std::vector<LayerCase> layer_cases() {
  return {
      transformer_case("llama", BlockStyle::kLlama),
      transformer_case("llama with grouped heads", BlockStyle::kLlama, 2),
      sixteen_bit_case("llama in bf16", DType::kBf16, 2),
      sixteen_bit_case("llama in fp16 with grouped heads", DType::kFp16, 1),
      checkpoint_case("checkpointed", CheckpointPolicy::kRecomputeAll),
      checkpoint_case("checkpointed selectively", CheckpointPolicy::kSelective),
      transformer_case("gpt2", BlockStyle::kGpt2),
      transformer_case("bert", BlockStyle::kBert),
      transformer_case("vit", BlockStyle::kVit),
      transformer_case("dit", BlockStyle::kDit),
      transformer_case("nn.TransformerEncoderLayer", BlockStyle::kTorch),
      {"mlp", {3, 16}, [](Builder& b) { return shared(make_mlp(b, 16, 24, Activation::kGelu)); }},
      {"swiglu",
       {3, 16},
       [](Builder& b) { return shared(make_gated_unit(b, 16, 24, Activation::kSilu)); }},
      operator_case("fno classic", FnoStyle::kClassic, {2, 4, 8, 8}, {3, 3}),
      operator_case("fno neuralop", FnoStyle::kNeuralop, {2, 4, 8, 8}, {3, 3}),
      operator_case("fno 1-D", FnoStyle::kClassic, {2, 4, 16}, {4}),
      operator_case("fno 3-D", FnoStyle::kNeuralop, {1, 4, 6, 6, 6}, {2, 2, 2}),
      {"conv-bn-relu-pool", {2, 3, 8, 8}, conv_bn_relu_pool, kConvolutions},
      {"resnet bottleneck", {2, 4, 6, 6}, bottleneck, kConvolutions},
      {"u-net blocks with attention", {2, 8, 4, 4}, unet_blocks, kManyConvolutions},
      {"embedding and tied head with loss", {2, 5, 16}, embedding_and_head},
      {"chunked head with loss", {11, 16}, chunked_head}};
}

}  // namespace memfathom::selftest
