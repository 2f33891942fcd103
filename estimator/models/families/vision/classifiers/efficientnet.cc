// EfficientNet B0 to B7 and V2 as torchvision has them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "estimator/models/blocks/squeeze_excitation.h"
#include "estimator/models/families/vision/classifiers/classifiers.h"
#include "kernels/framework/ops/arithmetic.h"

namespace memfathom {
namespace {

constexpr double kStochasticDepth = 0.2;

struct EfficientNetStage {
  std::int64_t expansion, kernel, stride, in, out, count;
  bool fused =
      false;  // V2's: one dense convolution for the wide and the deep one, nothing squeezed
};
constexpr EfficientNetStage kStages[] = {
    {1, 3, 1, 32, 16, 1},  {6, 3, 2, 16, 24, 2},   {6, 5, 2, 24, 40, 2},  {6, 3, 2, 40, 80, 3},
    {6, 5, 1, 80, 112, 3}, {6, 5, 2, 112, 192, 4}, {6, 3, 1, 192, 320, 1}};

constexpr EfficientNetStage kSmall[] = {{1, 3, 1, 24, 24, 2, true}, {4, 3, 2, 24, 48, 4, true},
                                        {4, 3, 2, 48, 64, 4, true}, {4, 3, 2, 64, 128, 6},
                                        {6, 3, 1, 128, 160, 9},     {6, 3, 2, 160, 256, 15}};
constexpr EfficientNetStage kMedium[] = {{1, 3, 1, 24, 24, 3, true}, {4, 3, 2, 24, 48, 5, true},
                                         {4, 3, 2, 48, 80, 5, true}, {4, 3, 2, 80, 160, 7},
                                         {6, 3, 1, 160, 176, 14},    {6, 3, 2, 176, 304, 18},
                                         {6, 3, 1, 304, 512, 5}};
constexpr EfficientNetStage kLarge[] = {{1, 3, 1, 32, 32, 4, true}, {4, 3, 2, 32, 64, 7, true},
                                        {4, 3, 2, 64, 96, 7, true}, {4, 3, 2, 96, 192, 10},
                                        {6, 3, 1, 192, 224, 19},    {6, 3, 2, 224, 384, 25},
                                        {6, 3, 1, 384, 640, 7}};

std::vector<Layer> fused_layers(const ImageContext& context, const EfficientNetStage& cfg,
                                std::int64_t expanded, double eps) {
  const bool widens = expanded != cfg.in;
  const ConvSpec dense{
      .in = cfg.in, .out = widens ? expanded : cfg.out, .kernel = cfg.kernel, .stride = cfg.stride};
  std::vector<Layer> layers;
  layers.push_back(conv_norm_layer(context, "0", dense, Activation::kSilu, eps));
  if (widens) {
    layers.push_back(conv_norm_layer(context, "1", {.in = expanded, .out = cfg.out, .kernel = 1},
                                     Activation::kIdentity, eps));
  }
  return layers;
}

std::vector<Layer> separated_layers(const ImageContext& context, const EfficientNetStage& cfg,
                                    std::int64_t expanded, double eps) {
  std::vector<Layer> layers;
  const auto name = [&] { return fmt::format("{}", layers.size()); };
  if (expanded != cfg.in) {
    layers.push_back(conv_norm_layer(context, name(), {.in = cfg.in, .out = expanded, .kernel = 1},
                                     Activation::kSilu, eps));
  }
  layers.push_back(conv_norm_layer(context, name(),
                                   {.in = expanded,
                                    .out = expanded,
                                    .kernel = cfg.kernel,
                                    .stride = cfg.stride,
                                    .groups = expanded},
                                   Activation::kSilu, eps));
  layers.push_back(squeeze_excitation_layer(context, name(),
                                            {.channels = expanded,
                                             .squeezed = std::max<std::int64_t>(1, cfg.in / 4),
                                             .activation = Activation::kSilu,
                                             .in_place = true}));
  layers.push_back(conv_norm_layer(context, name(), {.in = expanded, .out = cfg.out, .kernel = 1},
                                   Activation::kIdentity, eps));
  return layers;
}

Layer make_block(const ImageContext& context, const EfficientNetStage& cfg, double drop,
                 double eps) {
  const std::int64_t expanded = divisible_channels(static_cast<double>(cfg.in * cfg.expansion));
  std::vector<Layer> layers;
  {
    const PathScope scope(context.builder, "block");
    layers = cfg.fused ? fused_layers(context, cfg, expanded, eps)
                       : separated_layers(context, cfg, expanded, eps);
  }
  const bool residual = cfg.stride == 1 && cfg.in == cfg.out;
  return [layers = std::move(layers), residual, drop](const Tensor& x) {
    Tensor result = run_layers(layers, x);
    if (!residual) return result;
    result = stochastic_depth(result, drop);
    add_in_place(result, x);
    return result;
  };
}

// What the versions differ in beside their stages.
struct StemAndHead {
  std::int64_t last;  // channels before the classifier
  double dropout, eps;
};

Layer make_staged(const ImageContext& context, std::int64_t classes,
                  std::span<const EfficientNetStage> stages, const StemAndHead& frame) {
  std::int64_t total = 0;
  for (const EfficientNetStage& stage : stages) total += stage.count;
  std::vector<Layer> features;
  std::int64_t done = 0;
  {
    const PathScope scope(context.builder, "features");
    const auto name = [&] { return fmt::format("{}", features.size()); };
    features.push_back(conv_norm_layer(
        context, name(), {.in = 3, .out = stages.front().in, .kernel = 3, .stride = 2},
        Activation::kSilu, frame.eps));
    for (const EfficientNetStage& stage : stages) {
      const PathScope stage_scope(context.builder, name());
      std::vector<Layer> blocks;
      for (std::int64_t i = 0; i < stage.count; ++i, ++done) {
        const PathScope block(context.builder, fmt::format("{}", i));
        EfficientNetStage own = stage;
        if (i > 0) {
          own.in = stage.out;
          own.stride = 1;
        }
        const double drop =
            kStochasticDepth * static_cast<double>(done) / static_cast<double>(total);
        blocks.push_back(block_layer(context, make_block(context, own, drop, frame.eps)));
      }
      features.push_back(sequential(std::move(blocks)));
    }
    features.push_back(conv_norm_layer(context, name(),
                                       {.in = stages.back().out, .out = frame.last, .kernel = 1},
                                       Activation::kSilu, frame.eps));
  }
  std::vector<Layer> layers;
  layers.push_back(sequential(std::move(features)));
  layers.emplace_back(global_average);
  const PathScope scope(context.builder, "classifier");
  const HeadScope head(context.builder);
  layers.push_back(sequential({dropout_in_place_layer(context.dropout(frame.dropout)),
                               linear_layer(context, "1", frame.last, classes)}));
  return sequential(std::move(layers));
}

}  // namespace

Layer make_efficientnet(const ImageContext& context, std::int64_t classes,
                        const EfficientNetConfig& cfg) {
  std::vector<EfficientNetStage> stages(std::begin(kStages), std::end(kStages));
  for (EfficientNetStage& stage : stages) {
    stage.in = divisible_channels(static_cast<double>(stage.in) * cfg.width);
    stage.out = divisible_channels(static_cast<double>(stage.out) * cfg.width);
    stage.count =
        static_cast<std::int64_t>(std::ceil(static_cast<double>(stage.count) * cfg.depth));
  }
  const double eps = cfg.width >= 1.6 ? 1e-3 : 1e-5;  // B5 to B7
  return make_staged(context, classes, stages, {4 * stages.back().out, cfg.dropout, eps});
}

Layer make_efficientnet_v2(const ImageContext& context, std::int64_t classes,
                           EfficientNetSize size) {
  constexpr std::int64_t kLast = 1280;
  constexpr double kEps = 1e-3;
  switch (size) {
    case EfficientNetSize::kSmall: return make_staged(context, classes, kSmall, {kLast, 0.2, kEps});
    case EfficientNetSize::kMedium:
      return make_staged(context, classes, kMedium, {kLast, 0.3, kEps});
    case EfficientNetSize::kLarge: break;
  }
  return make_staged(context, classes, kLarge, {kLast, 0.4, kEps});
}

}  // namespace memfathom
