#include "estimator/models/families/vision/vggt/dpt_head.h"

#include <fmt/format.h>

#include <array>

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/convolution.h"
#include "kernels/framework/ops/pool.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

constexpr std::int64_t kPatch = 14;
constexpr std::int64_t kFeatures = 256;
constexpr std::array<std::int64_t, 4> kChannels{256, 512, 1024, 1024};

Layer transposed_layer(const ImageContext& context, std::string_view name, std::int64_t channels,
                       std::int64_t scale) {
  const PathScope scope(context.builder, name);
  const Tensor weight = context.builder.parameter("weight", {channels, channels, scale, scale});
  const Tensor bias = context.builder.parameter("bias", {channels});
  ConvolutionOptions options;
  options.stride = {scale, scale};
  options.padding = {0, 0};
  options.dilation = {1, 1};
  options.transposed = true;
  return [=](const Tensor& x) { return convolution(x, weight, bias, options); };
}

Layer conv3(const ImageContext& context, std::string_view name, std::int64_t in, std::int64_t out,
            bool bias = true) {
  return conv_layer(context, name, {.in = in, .out = out, .kernel = 3, .padding = 1, .bias = bias});
}

Layer conv1(const ImageContext& context, std::string_view name, std::int64_t in, std::int64_t out) {
  return conv_layer(context, name, {.in = in, .out = out, .kernel = 1, .bias = true});
}

// A table of the grid's positions is made anew and added.
Tensor with_positions(const Tensor& x) {
  const Tensor table = x.session().empty({1, x.size(1), x.size(2), x.size(3)}, x.dtype());
  return add(x, table);
}

}  // namespace

// The activation works in place: the unit's input is rectified too.
Tensor DptHead::Unit::operator()(const Tensor& input) const {
  Tensor x = input;
  activate_in_place(Activation::kRelu, x);
  Tensor t = first(x);
  activate_in_place(Activation::kRelu, t);
  t = second(t);
  return add(t, x);
}

DptHead::Unit DptHead::make_unit(const ImageContext& context, std::string_view name) const {
  const PathScope scope(context.builder, name);
  return {conv3(context, "conv1", kFeatures, kFeatures),
          conv3(context, "conv2", kFeatures, kFeatures)};
}

DptHead::DptHead(const ImageContext& context, std::string_view name, std::int64_t width,
                 std::int64_t outputs) {
  Builder& builder = context.builder;
  const PathScope scope(builder, name);
  norm_ = make_layer_norm(builder, "norm", width);
  for (std::size_t i = 0; i < kChannels.size(); ++i) {
    projections_.push_back(conv1(context, fmt::format("projects.{}", i), width, kChannels[i]));
  }
  resizes_.push_back(transposed_layer(context, "resize_layers.0", kChannels[0], 4));
  resizes_.push_back(transposed_layer(context, "resize_layers.1", kChannels[1], 2));
  resizes_.emplace_back([](const Tensor& x) { return x; });
  resizes_.push_back(conv_layer(context, "resize_layers.3",
                                {.in = kChannels[3],
                                 .out = kChannels[3],
                                 .kernel = 3,
                                 .stride = 2,
                                 .padding = 1,
                                 .bias = true}));
  const PathScope scratch(builder, "scratch");
  for (std::size_t i = 0; i < kChannels.size(); ++i) {
    narrows_.push_back(
        conv3(context, fmt::format("layer{}_rn", i + 1), kChannels[i], kFeatures, false));
  }
  for (std::size_t i = 0; i < kChannels.size(); ++i) {
    const PathScope refine(builder, fmt::format("refinenet{}", i + 1));
    Fusion fusion;
    fusion.out = conv1(context, "out_conv", kFeatures, kFeatures);
    if (i + 1 < kChannels.size()) fusion.beside = make_unit(context, "resConfUnit1");
    fusion.after = make_unit(context, "resConfUnit2");
    fusions_.push_back(std::move(fusion));
  }
  out1_ = conv3(context, "output_conv1", kFeatures, kFeatures / 2);
  out2_ = conv3(context, "output_conv2.0", kFeatures / 2, 32);
  out3_ = conv1(context, "output_conv2.2", 32, outputs);
}

Tensor DptHead::fused(const Fusion& fusion, const Tensor& coarse, const Tensor& fine,
                      const Shape& size) const {
  Tensor x = coarse;
  if (fine) {
    const Tensor beside = fusion.beside(fine);
    x = add(x, beside);
  }
  x = fusion.after(x);
  x = upsample(x, UpsampleMode::kBilinear, size);
  return fusion.out(x);
}

Tensor DptHead::operator()(std::span<const Tensor> tokens, std::int64_t height,
                           std::int64_t width) const {
  std::vector<Tensor> maps;
  for (std::size_t i = 0; i < kChannels.size(); ++i) {
    Tensor x = norm_(tokens[i]);
    x = reshape(permute(x, {0, 2, 1}), {x.size(0), x.size(2), height / kPatch, width / kPatch});
    x = projections_[i](x);
    x = with_positions(x);
    maps.push_back(resizes_[i](x));
  }
  for (std::size_t i = 0; i < kChannels.size(); ++i) maps[i] = narrows_[i](maps[i]);
  const auto size_of_map = [&](std::size_t i) { return Shape{maps[i].size(2), maps[i].size(3)}; };
  Tensor x = fused(fusions_[3], maps[3], {}, size_of_map(2));
  maps[3].reset();
  for (std::size_t i = 2; i > 0; --i) {
    x = fused(fusions_[i], x, maps[i], size_of_map(i - 1));
    maps[i].reset();
  }
  x = fused(fusions_[0], x, maps[0], {2 * maps[0].size(2), 2 * maps[0].size(3)});
  maps.clear();
  x = out1_(x);
  x = upsample(x, UpsampleMode::kBilinear, {height, width});
  x = with_positions(x);
  x = out2_(x);
  activate_in_place(Activation::kRelu, x);
  return out3_(x);
}

}  // namespace memfathom
