// MobileNet v2 and v3 as torchvision has them.
#include <fmt/format.h>

#include <utility>

#include "estimator/models/blocks/squeeze_excitation.h"
#include "estimator/models/families/vision/classifiers/classifiers.h"
#include "kernels/framework/ops/arithmetic.h"

namespace memfathom {
namespace {

constexpr double kThirdVersionEps = 1e-3;

Layer make_inverted_residual(const ImageContext& context, std::int64_t in, std::int64_t out,
                             std::int64_t stride, std::int64_t expansion) {
  const std::int64_t hidden = in * expansion;
  std::vector<Layer> layers;
  {
    const PathScope scope(context.builder, "conv");
    const auto name = [&] { return fmt::format("{}", layers.size()); };
    if (expansion != 1) {
      layers.push_back(conv_norm_layer(context, name(), {.in = in, .out = hidden, .kernel = 1},
                                       Activation::kRelu6));
    }
    layers.push_back(conv_norm_layer(
        context, name(),
        {.in = hidden, .out = hidden, .kernel = 3, .stride = stride, .groups = hidden},
        Activation::kRelu6));
    layers.push_back(conv_layer(context, name(), {.in = hidden, .out = out, .kernel = 1}));
    layers.push_back(batch_norm_layer(context, name(), out));
  }
  const bool residual = stride == 1 && in == out;
  return [layers = std::move(layers), residual](const Tensor& x) {
    const Tensor result = run_layers(layers, x);
    return residual ? add(x, result) : result;
  };
}

struct Bottleneck {
  std::int64_t kernel, expanded, out;
  bool squeezes, hard_swish;
  std::int64_t stride;
};

constexpr Bottleneck kLarge[] = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1},
};
constexpr Bottleneck kSmall[] = {
    {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
    {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
    {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
    {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1},
};

Layer make_bottleneck(const ImageContext& context, std::int64_t in, const Bottleneck& cfg) {
  const Activation activation = cfg.hard_swish ? Activation::kHardswish : Activation::kRelu;
  std::vector<Layer> layers;
  {
    const PathScope scope(context.builder, "block");
    const auto name = [&] { return fmt::format("{}", layers.size()); };
    if (cfg.expanded != in) {
      layers.push_back(conv_norm_layer(context, name(),
                                       {.in = in, .out = cfg.expanded, .kernel = 1}, activation,
                                       kThirdVersionEps));
    }
    layers.push_back(conv_norm_layer(context, name(),
                                     {.in = cfg.expanded,
                                      .out = cfg.expanded,
                                      .kernel = cfg.kernel,
                                      .stride = cfg.stride,
                                      .groups = cfg.expanded},
                                     activation, kThirdVersionEps));
    if (cfg.squeezes) {
      const std::int64_t quarter = cfg.expanded / 4;
      const std::int64_t squeezed = divisible_channels(static_cast<double>(quarter));
      layers.push_back(squeeze_excitation_layer(
          context, name(),
          {.channels = cfg.expanded, .squeezed = squeezed, .gate = Activation::kHardsigmoid}));
    }
    layers.push_back(conv_norm_layer(context, name(),
                                     {.in = cfg.expanded, .out = cfg.out, .kernel = 1},
                                     Activation::kIdentity, kThirdVersionEps));
  }
  const bool residual = cfg.stride == 1 && in == cfg.out;
  return [layers = std::move(layers), residual](const Tensor& x) {
    Tensor result = run_layers(layers, x);
    if (residual) add_in_place(result, x);
    return result;
  };
}

}  // namespace

Layer make_mobilenet_v2(const ImageContext& context, std::int64_t classes) {
  struct MobileNetStage {
    std::int64_t expansion, out, count, stride;
  };
  constexpr MobileNetStage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                        {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  constexpr std::int64_t kLast = 1280;
  std::vector<Layer> features;
  {
    const PathScope scope(context.builder, "features");
    const auto name = [&] { return fmt::format("{}", features.size()); };
    features.push_back(conv_norm_layer(
        context, name(), {.in = 3, .out = 32, .kernel = 3, .stride = 2}, Activation::kRelu6));
    std::int64_t in = 32;
    for (const MobileNetStage& stage : kStages) {
      for (std::int64_t i = 0; i < stage.count; ++i) {
        const PathScope block(context.builder, name());
        features.push_back(block_layer(
            context, make_inverted_residual(context, in, stage.out, i == 0 ? stage.stride : 1,
                                            stage.expansion)));
        in = stage.out;
      }
    }
    features.push_back(conv_norm_layer(context, name(), {.in = in, .out = kLast, .kernel = 1},
                                       Activation::kRelu6));
  }
  std::vector<Layer> layers;
  layers.push_back(sequential(std::move(features)));
  layers.emplace_back(global_average);
  const PathScope scope(context.builder, "classifier");
  const HeadScope head(context.builder);
  layers.push_back(sequential(
      {dropout_layer(context.dropout(0.2)), linear_layer(context, "1", kLast, classes)}));
  return sequential(std::move(layers));
}

Layer make_mobilenet_v3(const ImageContext& context, std::int64_t classes, bool large) {
  const std::span<const Bottleneck> plans =
      large ? std::span<const Bottleneck>(kLarge) : std::span<const Bottleneck>(kSmall);
  std::int64_t in = 16;
  std::vector<Layer> features;
  {
    const PathScope scope(context.builder, "features");
    const auto name = [&] { return fmt::format("{}", features.size()); };
    features.push_back(conv_norm_layer(context, name(),
                                       {.in = 3, .out = in, .kernel = 3, .stride = 2},
                                       Activation::kHardswish, kThirdVersionEps));
    for (const Bottleneck& cfg : plans) {
      const PathScope block(context.builder, name());
      features.push_back(block_layer(context, make_bottleneck(context, in, cfg)));
      in = cfg.out;
    }
    features.push_back(conv_norm_layer(context, name(), {.in = in, .out = 6 * in, .kernel = 1},
                                       Activation::kHardswish, kThirdVersionEps));
  }
  const std::int64_t last = large ? 1280 : 1024;
  std::vector<Layer> layers;
  layers.push_back(sequential(std::move(features)));
  layers.emplace_back(global_average);
  const PathScope scope(context.builder, "classifier");
  const HeadScope head(context.builder);
  std::vector<Layer> classifier;
  classifier.push_back(linear_layer(context, "0", 6 * in, last));
  classifier.push_back(activation_layer(Activation::kHardswish));
  classifier.push_back(dropout_in_place_layer(context.dropout(0.2)));
  classifier.push_back(linear_layer(context, "3", last, classes));
  layers.push_back(sequential(std::move(classifier)));
  return sequential(std::move(layers));
}

}  // namespace memfathom
