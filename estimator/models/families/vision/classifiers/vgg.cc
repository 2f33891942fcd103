// VGG and AlexNet as torchvision has them.
#include <fmt/format.h>

#include <utility>

#include "estimator/models/families/vision/classifiers/classifiers.h"
#include "kernels/framework/ops/pool.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kHidden = 4096;

Layer pooled_and_flat(std::int64_t size) {
  return [size](const Tensor& x) {
    const Tensor pooled = adaptive_average_pool(x, {size, size});
    return flatten(pooled, 1);
  };
}

}  // namespace

Layer make_vgg(const ImageContext& context, std::int64_t classes,
               std::span<const std::int64_t> widths, bool batch_norm) {
  std::vector<Layer> features;
  std::int64_t in = 3;
  {
    const PathScope scope(context.builder, "features");
    for (const std::int64_t width : widths) {
      if (width == 0) {
        features.push_back(max_pool_layer(2, 2));
        continue;
      }
      features.push_back(
          conv_layer(context, fmt::format("{}", features.size()),
                     {.in = in, .out = width, .kernel = 3, .padding = 1, .bias = true}));
      if (batch_norm)
        features.push_back(batch_norm_layer(context, fmt::format("{}", features.size()), width));
      features.push_back(activation_layer(Activation::kRelu));
      in = width;
    }
  }
  std::vector<Layer> layers;
  layers.push_back(sequential(std::move(features)));
  layers.push_back(pooled_and_flat(7));
  const PathScope scope(context.builder, "classifier");
  const HeadScope head(context.builder);
  const double p = context.dropout(0.5);
  std::vector<Layer> classifier;
  classifier.push_back(linear_layer(context, "0", in * 7 * 7, kHidden));
  classifier.push_back(activation_layer(Activation::kRelu));
  classifier.push_back(dropout_layer(p));
  classifier.push_back(linear_layer(context, "3", kHidden, kHidden));
  classifier.push_back(activation_layer(Activation::kRelu));
  classifier.push_back(dropout_layer(p));
  classifier.push_back(linear_layer(context, "6", kHidden, classes));
  layers.push_back(sequential(std::move(classifier)));
  return sequential(std::move(layers));
}

Layer make_alexnet(const ImageContext& context, std::int64_t classes) {
  std::vector<Layer> features;
  {
    const PathScope scope(context.builder, "features");
    const auto conv = [&](std::string_view name, ConvSpec cfg) {
      cfg.bias = true;
      features.push_back(conv_layer(context, name, cfg));
      features.push_back(activation_layer(Activation::kRelu));
    };
    conv("0", {.in = 3, .out = 64, .kernel = 11, .stride = 4, .padding = 2});
    features.push_back(max_pool_layer(3, 2));
    conv("3", {.in = 64, .out = 192, .kernel = 5, .padding = 2});
    features.push_back(max_pool_layer(3, 2));
    conv("6", {.in = 192, .out = 384, .kernel = 3, .padding = 1});
    conv("8", {.in = 384, .out = 256, .kernel = 3, .padding = 1});
    conv("10", {.in = 256, .out = 256, .kernel = 3, .padding = 1});
    features.push_back(max_pool_layer(3, 2));
  }
  std::vector<Layer> layers;
  layers.push_back(sequential(std::move(features)));
  layers.push_back(pooled_and_flat(6));
  const PathScope scope(context.builder, "classifier");
  const HeadScope head(context.builder);
  const double p = context.dropout(0.5);
  std::vector<Layer> classifier;
  classifier.push_back(dropout_layer(p));
  classifier.push_back(linear_layer(context, "1", std::int64_t{256} * 6 * 6, kHidden));
  classifier.push_back(activation_layer(Activation::kRelu));
  classifier.push_back(dropout_layer(p));
  classifier.push_back(linear_layer(context, "4", kHidden, kHidden));
  classifier.push_back(activation_layer(Activation::kRelu));
  classifier.push_back(linear_layer(context, "6", kHidden, classes));
  layers.push_back(sequential(std::move(classifier)));
  return sequential(std::move(layers));
}

}  // namespace memfathom
