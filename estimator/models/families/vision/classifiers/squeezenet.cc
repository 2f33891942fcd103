// SqueezeNet 1.0 and 1.1 as torchvision has them.
#include <fmt/format.h>

#include <utility>

#include "estimator/models/families/vision/classifiers/classifiers.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

Layer make_fire(const ImageContext& context, std::int64_t in, std::int64_t squeezed,
                std::int64_t expanded) {
  const Layer squeeze =
      conv_layer(context, "squeeze", {.in = in, .out = squeezed, .kernel = 1, .bias = true});
  const Layer narrow = conv_layer(context, "expand1x1",
                                  {.in = squeezed, .out = expanded, .kernel = 1, .bias = true});
  const Layer wide =
      conv_layer(context, "expand3x3",
                 {.in = squeezed, .out = expanded, .kernel = 3, .padding = 1, .bias = true});
  return [=](const Tensor& input) {
    Tensor x = squeeze(input);
    activate_in_place(Activation::kRelu, x);
    Tensor parts[2];
    parts[0] = narrow(x);
    activate_in_place(Activation::kRelu, parts[0]);
    parts[1] = wide(x);
    activate_in_place(Activation::kRelu, parts[1]);
    return cat(parts, 1);
  };
}

}  // namespace

Layer make_squeezenet(const ImageContext& context, std::int64_t classes, bool first_version) {
  std::vector<Layer> features;
  std::int64_t channels = first_version ? 96 : 64;
  {
    const PathScope scope(context.builder, "features");
    const std::int64_t kernel = first_version ? 7 : 3;
    features.push_back(conv_layer(
        context, "0", {.in = 3, .out = channels, .kernel = kernel, .stride = 2, .bias = true}));
    features.push_back(activation_layer(Activation::kRelu));
    features.push_back(max_pool_layer(3, 2, 0, true));
    const auto fire = [&](std::int64_t squeezed) {
      const PathScope block(context.builder, fmt::format("{}", features.size()));
      features.push_back(make_fire(context, channels, squeezed, 4 * squeezed));
      channels = 8 * squeezed;
    };
    const auto pool = [&] { features.push_back(max_pool_layer(3, 2, 0, true)); };
    fire(16);
    fire(16);
    if (!first_version) pool();
    fire(32);
    if (first_version) pool();
    fire(32);
    if (!first_version) pool();
    fire(48);
    fire(48);
    fire(64);
    if (first_version) pool();
    fire(64);
  }
  std::vector<Layer> layers;
  layers.push_back(sequential(std::move(features)));
  const PathScope scope(context.builder, "classifier");
  const HeadScope head(context.builder);
  std::vector<Layer> classifier;
  classifier.push_back(dropout_layer(context.dropout(0.5)));
  classifier.push_back(
      conv_layer(context, "1", {.in = channels, .out = classes, .kernel = 1, .bias = true}));
  classifier.push_back(activation_layer(Activation::kRelu));
  classifier.emplace_back(global_average);
  layers.push_back(sequential(std::move(classifier)));
  return sequential(std::move(layers));
}

}  // namespace memfathom
