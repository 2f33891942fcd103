// ResNet, ResNeXt and wide ResNet as torchvision has them.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "estimator/models/families/vision/classifiers/classifiers.h"
#include "kernels/framework/ops/arithmetic.h"

namespace memfathom {
namespace {

constexpr std::int64_t kBottleneckExpansion = 4;

struct ResNetBlock {
  std::vector<Layer> convolutions, norms;
  Layer shortcut;  // absent: the input itself

  void add(const ImageContext& context, const ConvSpec& cfg) {
    const std::size_t number = convolutions.size() + 1;
    convolutions.push_back(conv_layer(context, fmt::format("conv{}", number), cfg));
    norms.push_back(batch_norm_layer(context, fmt::format("bn{}", number), cfg.out));
  }

  Tensor operator()(const Tensor& x) const {
    Tensor out = x;
    for (std::size_t i = 0; i < convolutions.size(); ++i) {
      out = convolutions[i](out);
      out = norms[i](out);
      // The last one meets the shortcut before its activation.
      if (i + 1 < convolutions.size()) activate_in_place(Activation::kRelu, out);
    }
    const Tensor identity = shortcut ? shortcut(x) : x;
    add_in_place(out, identity);
    activate_in_place(Activation::kRelu, out);
    return out;
  }
};

ResNetBlock make_block(const ImageContext& context, const ResNetConfig& cfg, std::int64_t in,
                       std::int64_t planes, std::int64_t stride) {
  ResNetBlock block;
  const std::int64_t out = planes * (cfg.bottleneck ? kBottleneckExpansion : 1);
  if (cfg.bottleneck) {
    const std::int64_t width = planes * cfg.width_per_group / 64 * cfg.groups;
    block.add(context, {.in = in, .out = width, .kernel = 1});
    block.add(context, {.in = width,
                        .out = width,
                        .kernel = 3,
                        .stride = stride,
                        .padding = 1,
                        .groups = cfg.groups});
    block.add(context, {.in = width, .out = out, .kernel = 1});
  } else {
    block.add(context, {.in = in, .out = planes, .kernel = 3, .stride = stride, .padding = 1});
    block.add(context, {.in = planes, .out = planes, .kernel = 3, .padding = 1});
  }
  if (stride != 1 || in != out) {
    const PathScope scope(context.builder, "downsample");
    std::vector<Layer> layers;
    layers.push_back(
        conv_layer(context, "0", {.in = in, .out = out, .kernel = 1, .stride = stride}));
    layers.push_back(batch_norm_layer(context, "1", out));
    block.shortcut = sequential(std::move(layers));
  }
  return block;
}

}  // namespace

Layer make_resnet(const ImageContext& context, std::int64_t classes, const ResNetConfig& cfg) {
  std::vector<Layer> layers;
  layers.push_back(
      conv_layer(context, "conv1", {.in = 3, .out = 64, .kernel = 7, .stride = 2, .padding = 3}));
  layers.push_back(batch_norm_layer(context, "bn1", 64));
  layers.push_back(activation_layer(Activation::kRelu));
  layers.push_back(max_pool_layer(3, 2, 1));
  std::int64_t in = 64;
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const std::int64_t planes = std::int64_t{64} << stage;
    std::vector<Layer> blocks;
    for (std::int64_t i = 0; i < cfg.blocks[static_cast<std::size_t>(stage)]; ++i) {
      const PathScope scope(context.builder, fmt::format("layer{}", stage + 1), i);
      const std::int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      blocks.push_back(block_layer(context, make_block(context, cfg, in, planes, stride)));
      in = planes * (cfg.bottleneck ? kBottleneckExpansion : 1);
    }
    layers.push_back(sequential(std::move(blocks)));
  }
  layers.emplace_back(global_average);
  const HeadScope head(context.builder);
  layers.push_back(linear_layer(context, "fc", in, classes));
  return sequential(std::move(layers));
}

}  // namespace memfathom
