// EfficientNet B0 to B7 as torchvision has them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "estimator/models/vision/classifiers.h"
#include "estimator/models/vision/squeeze_excitation.h"
#include "kernels/ops/arithmetic.h"

namespace memfathom {
namespace {

constexpr double kStochasticDepth = 0.2;

struct Stage {
  std::int64_t expansion, kernel, stride, in, out, count;
};
constexpr Stage kStages[] = {{1, 3, 1, 32, 16, 1},  {6, 3, 2, 16, 24, 2},  {6, 5, 2, 24, 40, 2},
                             {6, 3, 2, 40, 80, 3},  {6, 5, 1, 80, 112, 3}, {6, 5, 2, 112, 192, 4},
                             {6, 3, 1, 192, 320, 1}};

Layer make_block(const ImageContext& context, const Stage& plan, double drop, double eps) {
  const std::int64_t expanded = divisible_channels(static_cast<double>(plan.in * plan.expansion));
  std::vector<Layer> layers;
  {
    const PathScope scope(context.builder, "block");
    const auto name = [&] { return fmt::format("{}", layers.size()); };
    if (expanded != plan.in) {
      layers.push_back(conv_norm_layer(
          context, name(), {.in = plan.in, .out = expanded, .kernel = 1}, Activation::kSilu, eps));
    }
    layers.push_back(conv_norm_layer(context, name(),
                                     {.in = expanded,
                                      .out = expanded,
                                      .kernel = plan.kernel,
                                      .stride = plan.stride,
                                      .groups = expanded},
                                     Activation::kSilu, eps));
    layers.push_back(squeeze_excitation_layer(context, name(),
                                              {.channels = expanded,
                                               .squeezed = std::max<std::int64_t>(1, plan.in / 4),
                                               .activation = Activation::kSilu,
                                               .in_place = true}));
    layers.push_back(conv_norm_layer(context, name(),
                                     {.in = expanded, .out = plan.out, .kernel = 1},
                                     Activation::kIdentity, eps));
  }
  const bool residual = plan.stride == 1 && plan.in == plan.out;
  return [layers = std::move(layers), residual, drop](const Tensor& x) {
    Tensor result = run_layers(layers, x);
    if (!residual) return result;
    result = stochastic_depth(result, drop);
    add_in_place(result, x);
    return result;
  };
}

}  // namespace

Layer make_efficientnet(const ImageContext& context, std::int64_t classes,
                        const EfficientNetPlan& plan) {
  std::vector<Stage> stages(std::begin(kStages), std::end(kStages));
  std::int64_t total = 0;
  for (Stage& stage : stages) {
    stage.in = divisible_channels(static_cast<double>(stage.in) * plan.width);
    stage.out = divisible_channels(static_cast<double>(stage.out) * plan.width);
    stage.count =
        static_cast<std::int64_t>(std::ceil(static_cast<double>(stage.count) * plan.depth));
    total += stage.count;
  }
  const double eps = plan.width >= 1.6 ? 1e-3 : 1e-5;  // B5 to B7
  std::vector<Layer> features;
  std::int64_t done = 0;
  const std::int64_t last = 4 * stages.back().out;
  {
    const PathScope scope(context.builder, "features");
    const auto name = [&] { return fmt::format("{}", features.size()); };
    features.push_back(conv_norm_layer(
        context, name(), {.in = 3, .out = stages.front().in, .kernel = 3, .stride = 2},
        Activation::kSilu, eps));
    for (const Stage& stage : stages) {
      const PathScope stage_scope(context.builder, name());
      std::vector<Layer> blocks;
      for (std::int64_t i = 0; i < stage.count; ++i, ++done) {
        const PathScope block(context.builder, fmt::format("{}", i));
        Stage own = stage;
        if (i > 0) {
          own.in = stage.out;
          own.stride = 1;
        }
        const double drop =
            kStochasticDepth * static_cast<double>(done) / static_cast<double>(total);
        blocks.push_back(block_layer(context, make_block(context, own, drop, eps)));
      }
      features.push_back(sequential(std::move(blocks)));
    }
    features.push_back(conv_norm_layer(context, name(),
                                       {.in = stages.back().out, .out = last, .kernel = 1},
                                       Activation::kSilu, eps));
  }
  std::vector<Layer> layers;
  layers.push_back(sequential(std::move(features)));
  layers.push_back(global_average);
  const PathScope scope(context.builder, "classifier");
  const HeadScope head(context.builder);
  layers.push_back(sequential({dropout_in_place_layer(context.dropout(plan.dropout)),
                               linear_layer(context, "1", last, classes)}));
  return sequential(std::move(layers));
}

}  // namespace memfathom
