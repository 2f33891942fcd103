// Swin Transformer as torchvision has it: attention inside windows that every other block shifts.
//
// Two places differ from torchvision's code without differing in what is kept: patches are merged
// by one copy instead of four strided slices and a concatenation, and the bias table is read as an
// embedding instead of by an index.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "estimator/models/families/vision/classifiers/classifiers.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/fft.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kWindow = 7;
constexpr std::int64_t kTokens = kWindow * kWindow;

std::int64_t padded(std::int64_t extent) { return (extent + kWindow - 1) / kWindow * kWindow; }

class WindowAttention {
 public:
  WindowAttention(const ImageContext& context, std::int64_t width, std::int64_t heads, bool shifted)
      : heads_(heads), shifted_(shifted) {
    Builder& builder = context.builder;
    const PathScope scope(builder, "attn");
    table_ = builder.parameter("relative_position_bias_table",
                               {(2 * kWindow - 1) * (2 * kWindow - 1), heads});
    index_ = builder.buffer("relative_position_index", {kTokens * kTokens}, DType::kInt64);
    qkv_ = make_linear(builder, "qkv", width, 3 * width);
    projection_ = make_linear(builder, "proj", width, width);
  }

  Tensor operator()(const Tensor& input) const {
    const Tensor bias = position_bias();
    const std::int64_t batch = input.size(0), height = input.size(1), width = input.size(2),
                       channels = input.size(3);
    const std::int64_t rows = padded(height) / kWindow, columns = padded(width) / kWindow;
    const std::int64_t windows = rows * columns;
    const bool shifts = shifted_ && (rows > 1 || columns > 1);
    const std::int64_t pairs[] = {0, 0, 0, padded(width) - width, 0, padded(height) - height};
    Tensor x = pairs[3] + pairs[5] > 0 ? pad(input, pairs) : input;
    static constexpr int kPlane[] = {1, 2};
    if (shifts) x = roll(x, kPlane, false);
    x = view(x, {batch, rows, kWindow, columns, kWindow, channels});
    x = reshape(permute(x, {0, 1, 3, 2, 4, 5}), {batch * windows, kTokens, channels});
    Tensor qkv = qkv_(x);
    qkv = permute(reshape(qkv, {batch * windows, kTokens, 3, heads_, channels / heads_}),
                  {2, 0, 3, 1, 4});
    Tensor q = select(qkv, 0, 0);
    const Tensor k = select(qkv, 0, 1);
    const Tensor v = select(qkv, 0, 2);
    q = mul_scalar(q, 1 / std::sqrt(static_cast<double>(channels) / static_cast<double>(heads_)));
    Tensor weights = matmul(q, transpose(k, 2, 3));
    weights = add(weights, bias);
    if (shifts) {
      const Tensor mask = shift_mask(input.session(), windows, input.dtype());
      weights = view(weights, {batch, windows, heads_, kTokens, kTokens});
      weights = add(weights, unsqueeze(unsqueeze(mask, 1), 0));
      weights = view(weights, {-1, heads_, kTokens, kTokens});
    }
    weights = softmax(weights);
    x = matmul(weights, v);
    x = reshape(transpose(x, 1, 2), {batch * windows, kTokens, channels});
    x = projection_(x);
    x = view(x, {batch, rows, columns, kWindow, kWindow, channels});
    x = reshape(permute(x, {0, 1, 3, 2, 4, 5}),
                {batch, rows * kWindow, columns * kWindow, channels});
    if (shifts) x = roll(x, kPlane, true);
    if (rows * kWindow != height) x = slice(x, 1, 0, height);
    if (columns * kWindow != width) x = slice(x, 2, 0, width);
    return contiguous(x);
  }

 private:
  Tensor position_bias() const {
    Tensor bias = embedding(table_, index_);
    bias = view(bias, {kTokens, kTokens, heads_});
    return unsqueeze(contiguous(permute(bias, {2, 0, 1})), 0);
  }

  // Which tokens of a window come from the other side of the image: made anew in each forward pass.
  static Tensor shift_mask(Session& session, std::int64_t windows, DType dtype) {
    const Tensor regions = session.zeros({windows, kTokens}, dtype);
    const Tensor difference = sub(unsqueeze(regions, 1), unsqueeze(regions, 2));
    Tensor mask;
    {
      const Tensor differs = session.empty(difference.shape(), DType::kBool);
      mask = clone(difference);
    }
    const Tensor equals = session.empty(difference.shape(), DType::kBool);
    return clone(mask);
  }

  std::int64_t heads_;
  bool shifted_;
  Tensor table_, index_;
  Linear qkv_, projection_;
};

Layer make_block(const ImageContext& context, std::int64_t width, std::int64_t heads, bool shifted,
                 double drop) {
  Builder& builder = context.builder;
  const LayerNorm norm1 = make_layer_norm(builder, "norm1", width);
  const WindowAttention attention(context, width, heads, shifted);
  const LayerNorm norm2 = make_layer_norm(builder, "norm2", width);
  const Linear up = make_linear(builder, "mlp.0", width, 4 * width);
  const Linear down = make_linear(builder, "mlp.3", 4 * width, width);
  return [=](const Tensor& input) {
    Tensor t = norm1(input);
    t = attention(t);
    t = stochastic_depth(t, drop);
    const Tensor x = add(input, t);
    t.reset();
    {
      const Tensor normed = norm2(x);  // who calls the feed-forward part holds its input
      t = up(normed);
      t = activate(Activation::kGelu, t);
      t = down(t);
    }
    t = stochastic_depth(t, drop);
    return add(x, t);
  };
}

// 2 x 2 patches become one of four times the channels, then twice.
Layer make_merging(const ImageContext& context, std::int64_t width) {
  const Linear reduction =
      make_linear(context.builder, "reduction", 4 * width, 2 * width, {.bias = false});
  const LayerNorm norm = make_layer_norm(context.builder, "norm", 4 * width);
  return [=](const Tensor& input) {
    const std::int64_t pairs[] = {0, 0, 0, input.size(2) % 2, 0, input.size(1) % 2};
    Tensor x = pairs[3] + pairs[5] > 0 ? pad(input, pairs) : input;
    const std::int64_t rows = x.size(1) / 2, columns = x.size(2) / 2;
    x = view(x, {x.size(0), rows, 2, columns, 2, width});
    x = reshape(permute(x, {0, 1, 3, 4, 2, 5}), {x.size(0), rows, columns, 4 * width});
    x = norm(x);
    return reduction(x);
  };
}

}  // namespace

Layer make_swin(const ImageContext& context, std::int64_t classes, const SwinConfig& cfg) {
  const std::array<std::int64_t, 4> counts{2, 2, cfg.third_stage, 2};
  const double total = static_cast<double>(6 + cfg.third_stage);
  std::int64_t done = 0, width = cfg.width, heads = cfg.heads;
  std::vector<Layer> features;
  {
    const PathScope scope(context.builder, "features");
    {
      const PathScope stem(context.builder, "0");
      std::vector<Layer> layers;
      layers.push_back(conv_layer(context, "0",
                                  {.in = 3, .out = width, .kernel = 4, .stride = 4, .bias = true}));
      layers.emplace_back([](const Tensor& x) { return permute(x, {0, 2, 3, 1}); });
      const LayerNorm norm = make_layer_norm(context.builder, "2", width);
      layers.emplace_back([norm](const Tensor& x) { return norm(x); });
      features.push_back(sequential(std::move(layers)));
    }
    for (std::size_t stage = 0; stage < counts.size(); ++stage) {
      std::vector<Layer> blocks;
      for (std::int64_t i = 0; i < counts[stage]; ++i, ++done) {
        const PathScope block(context.builder, fmt::format("{}.{}", features.size(), i));
        const double drop = cfg.stochastic_depth * static_cast<double>(done) / (total - 1);
        blocks.push_back(block_layer(context, make_block(context, width, heads, i % 2 == 1, drop)));
      }
      features.push_back(sequential(std::move(blocks)));
      if (stage + 1 == counts.size()) break;
      const PathScope merging(context.builder, fmt::format("{}", features.size()));
      features.push_back(make_merging(context, width));
      width *= 2;
      heads *= 2;
    }
  }
  const Layer body = sequential(std::move(features));
  const LayerNorm norm = make_layer_norm(context.builder, "norm", width);
  const HeadScope head_scope(context.builder);
  const Linear head = make_linear(context.builder, "head", width, classes, {.head = true});
  return [=](const Tensor& image) {
    Tensor x = body(image);
    x = norm(x);
    x = permute(x, {0, 3, 1, 2});
    x = global_average(x);
    return head(x);
  };
}

}  // namespace memfathom
