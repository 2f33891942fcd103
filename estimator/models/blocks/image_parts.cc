#include "estimator/models/blocks/image_parts.h"

#include <algorithm>
#include <utility>

#include "estimator/models/blocks/checkpointed.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/convolution.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/pool.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {

Layer conv_layer(const ImageContext& context, std::string_view name, const ConvSpec& cfg) {
  const PathScope scope(context.builder, name);
  const Shape shape{cfg.out, cfg.in / cfg.groups, cfg.kernel,
                    cfg.kernel_width.value_or(cfg.kernel)};
  const Tensor weight = context.builder.parameter("weight", shape);
  if (context.settings.channels_last) weight.impl()->strides = channels_last_strides(shape);
  Tensor bias;
  if (cfg.bias) bias = context.builder.parameter("bias", {cfg.out});
  ConvolutionOptions options;
  options.stride = {cfg.stride, cfg.stride_width.value_or(cfg.stride)};
  options.padding = {cfg.padding, cfg.padding_width.value_or(cfg.padding)};
  options.dilation = {1, 1};
  options.groups = cfg.groups;
  return [=](const Tensor& x) { return convolution(x, weight, bias, options); };
}

Layer batch_norm_layer(const ImageContext& context, std::string_view name, std::int64_t features,
                       double eps) {
  BatchNorm norm = make_batch_norm(context.builder, name, features);
  norm.eps = eps;
  return [norm](const Tensor& x) { return norm(x); };
}

Layer linear_layer(const ImageContext& context, std::string_view name, std::int64_t in,
                   std::int64_t out) {
  const Linear linear = make_linear(context.builder, name, in, out);
  return [linear](const Tensor& x) { return linear(x); };
}

Layer activation_layer(Activation activation, bool in_place) {
  if (!in_place) return [activation](const Tensor& x) { return activate(activation, x); };
  return [activation](const Tensor& x) {
    Tensor changed = x;
    activate_in_place(activation, changed);
    return changed;
  };
}

Layer dropout_layer(double p) {
  return [p](const Tensor& x) { return dropout(x, p); };
}

Layer dropout_in_place_layer(double p) {
  return [p](const Tensor& x) {
    Session& session = x.session();
    if (p == 0 || !session.training) return x;
    Recording tape(session, "mul_", {&x});
    const Tensor factors =
        session.full(x.shape(), x.dtype(), 1);  // these models run dry: the values do not matter
    tape.save(factors);
    Tensor changed = x.detach();
    tape.finish(changed, [](Backward& b) { b.give(0, mul(b.gradient(), b.saved(0))); });
    return changed;
  };
}

Layer max_pool_layer(std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                     bool ceil_mode) {
  const PoolOptions options{{kernel, kernel}, {stride, stride}, {padding, padding}, ceil_mode};
  return [options](const Tensor& x) { return max_pool(x, options); };
}

Layer average_pool_layer(std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  const PoolOptions options{{kernel, kernel}, {stride, stride}, {padding, padding}, false};
  return [options](const Tensor& x) { return average_pool(x, options); };
}

Layer conv_norm_layer(const ImageContext& context, std::string_view name, ConvSpec cfg,
                      Activation activation, double eps) {
  const PathScope scope(context.builder, name);
  cfg.padding = (cfg.kernel - 1) / 2;
  cfg.bias = false;
  std::vector<Layer> layers;
  layers.push_back(conv_layer(context, "0", cfg));
  layers.push_back(batch_norm_layer(context, "1", cfg.out, eps));
  if (activation != Activation::kIdentity) layers.push_back(activation_layer(activation));
  return sequential(std::move(layers));
}

Layer sequential(std::vector<Layer> layers) {
  return [layers = std::move(layers)](const Tensor& x) { return run_layers(layers, x); };
}

Layer block_layer(const ImageContext& context, Layer block) {
  if (context.settings.checkpointing == Checkpointing::kNone) return block;
  return [block = std::move(block), settings = context.settings](const Tensor& x) {
    return run_checkpointed(settings, block, x);
  };
}

Tensor global_average(const Tensor& x) {
  const Tensor pooled = adaptive_average_pool(x, {1, 1});
  return flatten(pooled, 1);
}

Tensor stochastic_depth(const Tensor& x, double p) {
  if (p == 0 || !x.session().training) return x;
  Shape rows = x.shape();
  for (int i = 1; i < rows.rank(); ++i) rows[i] = 1;
  const Tensor noise = x.session().full(rows, x.dtype(), 1);
  return mul(x, noise);
}

std::int64_t divisible_channels(double value, std::int64_t divisor) {
  const auto nearest =
      static_cast<std::int64_t>(value + static_cast<double>(divisor) / 2) / divisor * divisor;
  const std::int64_t rounded = std::max(divisor, nearest);
  return static_cast<double>(rounded) < 0.9 * value ? rounded + divisor : rounded;
}

}  // namespace memfathom
