// DenseNet as torchvision has it: each layer sees the concatenation of all before it.
#include <fmt/format.h>

#include <utility>

#include "estimator/models/families/vision/classifiers/classifiers.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kBottleneckFactor = 4;

struct DenseLayer {
  Layer norm1, conv1, norm2, conv2;

  Tensor operator()(const std::vector<Tensor>& features) const {
    const Tensor wide = narrowed(features);
    Tensor t = norm2(wide);
    activate_in_place(Activation::kRelu, t);
    return conv2(t);
  }

 private:
  Tensor narrowed(const std::vector<Tensor>& features) const {
    const Tensor joined = cat(features, 1);
    Tensor t = norm1(joined);
    activate_in_place(Activation::kRelu, t);
    return conv1(t);
  }
};

DenseLayer make_dense_layer(const ImageContext& context, std::int64_t in, std::int64_t growth) {
  const std::int64_t inner = kBottleneckFactor * growth;
  DenseLayer layer;
  layer.norm1 = batch_norm_layer(context, "norm1", in);
  layer.conv1 = conv_layer(context, "conv1", {.in = in, .out = inner, .kernel = 1});
  layer.norm2 = batch_norm_layer(context, "norm2", inner);
  layer.conv2 =
      conv_layer(context, "conv2", {.in = inner, .out = growth, .kernel = 3, .padding = 1});
  return layer;
}

Layer make_dense_block(const ImageContext& context, std::int64_t in, std::int64_t growth,
                       std::int64_t count) {
  std::vector<DenseLayer> layers;
  for (std::int64_t i = 0; i < count; ++i) {
    const PathScope scope(context.builder, fmt::format("denselayer{}", i + 1));
    layers.push_back(make_dense_layer(context, in + i * growth, growth));
  }
  return [layers = std::move(layers)](const Tensor& x) {
    std::vector<Tensor> features{x};
    for (const DenseLayer& layer : layers) features.push_back(layer(features));
    return cat(features, 1);
  };
}

Layer make_transition(const ImageContext& context, std::int64_t in) {
  std::vector<Layer> layers;
  layers.push_back(batch_norm_layer(context, "norm", in));
  layers.push_back(activation_layer(Activation::kRelu));
  layers.push_back(conv_layer(context, "conv", {.in = in, .out = in / 2, .kernel = 1}));
  layers.push_back(average_pool_layer(2, 2));
  return sequential(std::move(layers));
}

}  // namespace

Layer make_densenet(const ImageContext& context, std::int64_t classes, const DenseNetConfig& cfg) {
  std::vector<Layer> features;
  std::int64_t channels = cfg.stem;
  {
    const PathScope scope(context.builder, "features");
    features.push_back(conv_layer(
        context, "conv0", {.in = 3, .out = channels, .kernel = 7, .stride = 2, .padding = 3}));
    features.push_back(batch_norm_layer(context, "norm0", channels));
    features.push_back(activation_layer(Activation::kRelu));
    features.push_back(max_pool_layer(3, 2, 1));
    for (std::size_t i = 0; i < cfg.blocks.size(); ++i) {
      {
        const PathScope block(context.builder, fmt::format("denseblock{}", i + 1));
        features.push_back(
            block_layer(context, make_dense_block(context, channels, cfg.growth, cfg.blocks[i])));
      }
      channels += cfg.blocks[i] * cfg.growth;
      if (i + 1 == cfg.blocks.size()) break;
      const PathScope transition(context.builder, fmt::format("transition{}", i + 1));
      features.push_back(make_transition(context, channels));
      channels /= 2;
    }
    features.push_back(batch_norm_layer(context, "norm5", channels));
  }
  std::vector<Layer> layers;
  layers.push_back(sequential(std::move(features)));
  layers.push_back(activation_layer(Activation::kRelu));
  layers.emplace_back(global_average);
  const HeadScope head(context.builder);
  layers.push_back(linear_layer(context, "classifier", channels, classes));
  return sequential(std::move(layers));
}

}  // namespace memfathom
