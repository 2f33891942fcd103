// Layers over grids: convolutions, norms of channels, pooling, upsampling, padding.
#include <fmt/format.h>

#include "core/error.h"
#include "estimator/models/stack/keys.h"
#include "estimator/models/stack/layer_types.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/convolution.h"
#include "kernels/framework/ops/norm.h"
#include "kernels/framework/ops/pool.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

std::int64_t channels(const StackContext& context, const Node& spec, std::string_view key) {
  return extent_or(spec, key, context.shape.rank() > 1 ? context.shape[1] : 1);
}

Layer convolution_layer(StackContext& context, const Node& spec) {
  const std::string& type = spec.at("type").as_string();
  ConvolutionOptions options;
  options.transposed = type == "conv_transpose2d";
  const int dims = type == "conv1d" ? 1 : type == "conv3d" ? 3 : 2;
  const std::int64_t in = channels(context, spec, "in");
  const std::int64_t out = extent_of(spec, "out");
  options.groups = extent_or(spec, "groups", 1);
  if (in % options.groups != 0 || out % options.groups != 0) {
    spec.at("groups").refuse(fmt::format("it must divide both {} and {} channels", in, out));
  }
  options.stride = extents_or(spec, "stride", dims, 1, 1);
  options.padding = extents_or(spec, "padding", dims, 0, 0);
  options.dilation = extents_or(spec, "dilation", dims, 1, 1);
  const Shape kernel = extents_or(spec, "kernel", dims, 1, 1);
  Shape weight_shape =
      options.transposed ? Shape{in, out / options.groups} : Shape{out, in / options.groups};
  for (const std::int64_t k : kernel) weight_shape.push_back(k);
  const PathScope scope(context.builder, "conv");
  const Tensor weight = context.builder.parameter("weight", weight_shape);
  Tensor bias;
  if (flag_or(spec, "bias", true)) bias = context.builder.parameter("bias", {out});
  context.shape = convolution_shape(context.shape, weight_shape, options);
  return [=](const Tensor& x) { return convolution(x, weight, bias, options); };
}

Layer batch_norm_layer(StackContext& context, const Node& spec) {
  const BatchNorm norm =
      make_batch_norm(context.builder, "batch_norm", channels(context, spec, "features"));
  return [norm](const Tensor& x) { return norm(x); };
}

Layer group_norm_layer(StackContext& context, const Node& spec) {
  const GroupNorm norm =
      make_group_norm(context.builder, "group_norm", extent_or(spec, "groups", 32),
                      channels(context, spec, "features"));
  return [norm](const Tensor& x) { return norm(x); };
}

Layer instance_norm_layer(StackContext& context, const Node& spec) {
  const std::int64_t features = channels(context, spec, "features");
  const Tensor weight = context.builder.parameter("instance_norm.weight", {features});
  const Tensor bias = context.builder.parameter("instance_norm.bias", {features});
  return [=](const Tensor& x) { return instance_norm(x, weight, bias); };
}

Layer pool_layer(StackContext& context, const Node& spec) {
  const bool max = spec.at("type").as_string() == "max_pool2d";
  PoolOptions options;
  options.kernel = extents_or(spec, "kernel", 2, 2, 1);
  options.stride =
      spec.find("stride") != nullptr ? extents_or(spec, "stride", 2, 2, 1) : options.kernel;
  options.padding = extents_or(spec, "padding", 2, 0, 0);
  for (int i = 0; i < 2; ++i) {
    const std::int64_t room = context.shape[i + 2] + 2 * options.padding[i] - options.kernel[i];
    if (room < 0)
      spec.refuse(fmt::format("its window does not fit into an input of shape {}",
                              to_string(context.shape)));
    context.shape[i + 2] = room / options.stride[i] + 1;
  }
  return [max, options](const Tensor& x) {
    return max ? max_pool(x, options) : average_pool(x, options);
  };
}

Layer adaptive_pool_layer(StackContext& context, const Node& spec) {
  const Shape size = extents_or(spec, "size", 2, 1, 1);
  context.shape[-2] = size[0];
  context.shape[-1] = size[1];
  return [size](const Tensor& x) { return adaptive_average_pool(x, size); };
}

Layer upsample_layer(StackContext& context, const Node& spec) {
  const std::int64_t scale = extent_or(spec, "scale", 2);
  const Node* mode = spec.find("mode");
  const UpsampleMode how = mode != nullptr && mode->as_choice({"nearest", "bilinear"}) == 1
                               ? UpsampleMode::kBilinear
                               : UpsampleMode::kNearest;
  context.shape[-2] *= scale;
  context.shape[-1] *= scale;
  return [how, scale](const Tensor& x) {
    return upsample(x, how, {x.size(-2) * scale, x.size(-1) * scale});
  };
}

Layer pixel_shuffle_layer(StackContext& context, const Node& spec) {
  const std::int64_t factor = extent_or(spec, "factor", 2);
  if (context.shape[1] % (factor * factor) != 0) {
    spec.refuse(fmt::format("its input has {} channels, which {} squared does not divide",
                            context.shape[1], factor));
  }
  context.shape[1] /= factor * factor;
  context.shape[2] *= factor;
  context.shape[3] *= factor;
  return [factor](const Tensor& x) { return pixel_shuffle(x, factor); };
}

// pad {size: [left, right, top, bottom]}; crop is a pad by negative amounts, written in Python as a
// slice.
Layer pad_layer(StackContext& context, const Node& spec) {
  const bool crop = spec.at("type").as_string() == "crop";
  const std::vector<std::int64_t> size = spec.at("size").as_ints(0, kLargestExtent);
  if (size.size() % 2 != 0 || static_cast<int>(size.size()) / 2 > context.shape.rank() - 2) {
    spec.at("size").refuse("it must be pairs of numbers, from the last dimension on");
  }
  for (std::size_t i = 0; i < size.size() / 2; ++i) {
    std::int64_t& extent = context.shape[context.shape.rank() - 1 - static_cast<int>(i)];
    extent += (size[2 * i] + size[2 * i + 1]) * (crop ? -1 : 1);
    if (extent < 1) spec.at("size").refuse("nothing would be left of the input");
  }
  if (!crop) return [size](const Tensor& x) { return pad(x, size); };
  return [size](const Tensor& x) {
    Tensor t = x;
    for (std::size_t i = 0; i < size.size() / 2; ++i) {
      const int d = x.rank() - 1 - static_cast<int>(i);
      if (size[2 * i] + size[2 * i + 1] > 0)
        t = slice(t, d, size[2 * i], t.size(d) - size[2 * i + 1]);
    }
    return t;
  };
}

}  // namespace

const std::vector<LayerType>& image_layer_types() {
  static const std::vector<LayerType> kTypes = [] {
    const std::vector<std::string_view> conv_keys{"in",      "out",      "kernel", "stride",
                                                  "padding", "dilation", "groups", "bias"};
    const std::vector<std::string_view> pool_keys{"kernel", "stride", "padding"};
    return std::vector<LayerType>{
        {"conv1d", conv_keys, convolution_layer},
        {"conv2d", conv_keys, convolution_layer},
        {"conv3d", conv_keys, convolution_layer},
        {"conv_transpose2d", conv_keys, convolution_layer},
        {"batch_norm", {"features"}, batch_norm_layer},
        {"group_norm", {"groups", "features"}, group_norm_layer},
        {"instance_norm", {"features"}, instance_norm_layer},
        {"max_pool2d", pool_keys, pool_layer},
        {"avg_pool2d", pool_keys, pool_layer},
        {"adaptive_avg_pool2d", {"size"}, adaptive_pool_layer},
        {"upsample", {"scale", "mode"}, upsample_layer},
        {"pixel_shuffle", {"factor"}, pixel_shuffle_layer},
        {"pad", {"size"}, pad_layer},
        {"crop", {"size"}, pad_layer},
    };
  }();
  return kTypes;
}

}  // namespace memfathom
