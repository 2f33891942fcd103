// ConvNeXt as torchvision has it.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "estimator/models/families/vision/classifiers/classifiers.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/pool.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr double kEps = 1e-6;

// Layer norm over the channels of an image: the norm sees them last.
Layer channel_norm_layer(const ImageContext& context, std::string_view name,
                         std::int64_t features) {
  LayerNorm norm = make_layer_norm(context.builder, name, features);
  norm.eps = kEps;
  return [norm](const Tensor& input) {
    Tensor x = permute(input, {0, 2, 3, 1});
    x = norm(x);
    return permute(x, {0, 3, 1, 2});
  };
}

Layer make_block(const ImageContext& context, std::int64_t width, double drop) {
  const Tensor scale = context.builder.parameter("layer_scale", {width, 1, 1});
  const PathScope scope(context.builder, "block");
  std::vector<Layer> layers;
  layers.push_back(conv_layer(
      context, "0",
      {.in = width, .out = width, .kernel = 7, .padding = 3, .groups = width, .bias = true}));
  layers.emplace_back([](const Tensor& x) { return permute(x, {0, 2, 3, 1}); });
  LayerNorm norm = make_layer_norm(context.builder, "2", width);
  norm.eps = kEps;
  layers.emplace_back([norm](const Tensor& x) { return norm(x); });
  layers.push_back(linear_layer(context, "3", width, 4 * width));
  layers.push_back(activation_layer(Activation::kGelu, false));
  layers.push_back(linear_layer(context, "5", 4 * width, width));
  layers.emplace_back([](const Tensor& x) { return permute(x, {0, 3, 1, 2}); });
  return [layers = std::move(layers), scale, drop](const Tensor& x) {
    Tensor result;
    {
      const Tensor inner = run_layers(layers, x);
      result = mul(scale, inner);
    }
    result = stochastic_depth(result, drop);
    add_in_place(result, x);
    return result;
  };
}

}  // namespace

Layer make_convnext(const ImageContext& context, std::int64_t classes, const ConvNextConfig& cfg) {
  const std::array<std::int64_t, 4> counts{3, 3, cfg.third_stage, 3};
  const double total = static_cast<double>(9 + cfg.third_stage);
  std::int64_t done = 0;
  std::int64_t width = cfg.width;
  std::vector<Layer> features;
  {
    const PathScope scope(context.builder, "features");
    {
      const PathScope stem(context.builder, "0");
      std::vector<Layer> layers;
      layers.push_back(conv_layer(context, "0",
                                  {.in = 3, .out = width, .kernel = 4, .stride = 4, .bias = true}));
      layers.push_back(channel_norm_layer(context, "1", width));
      features.push_back(sequential(std::move(layers)));
    }
    for (std::size_t stage = 0; stage < counts.size(); ++stage) {
      std::vector<Layer> blocks;
      for (std::int64_t i = 0; i < counts[stage]; ++i, ++done) {
        const PathScope block(context.builder, fmt::format("{}.{}", features.size(), i));
        const double drop = cfg.stochastic_depth * static_cast<double>(done) / (total - 1);
        blocks.push_back(block_layer(context, make_block(context, width, drop)));
      }
      features.push_back(sequential(std::move(blocks)));
      if (stage + 1 == counts.size()) break;
      const PathScope down(context.builder, fmt::format("{}", features.size()));
      std::vector<Layer> layers;
      layers.push_back(channel_norm_layer(context, "0", width));
      layers.push_back(conv_layer(
          context, "1", {.in = width, .out = 2 * width, .kernel = 2, .stride = 2, .bias = true}));
      features.push_back(sequential(std::move(layers)));
      width *= 2;
    }
  }
  std::vector<Layer> layers;
  layers.push_back(sequential(std::move(features)));
  layers.emplace_back([](const Tensor& x) { return adaptive_average_pool(x, {1, 1}); });
  const PathScope scope(context.builder, "classifier");
  const HeadScope head(context.builder);
  std::vector<Layer> classifier;
  classifier.push_back(channel_norm_layer(context, "0", width));
  classifier.emplace_back([](const Tensor& x) { return flatten(x, 1); });
  classifier.push_back(linear_layer(context, "2", width, classes));
  layers.push_back(sequential(std::move(classifier)));
  return sequential(std::move(layers));
}

}  // namespace memfathom
