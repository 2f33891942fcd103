// Image parts: convolutions, norms, activations and pooling as layers, composed the way torchvision
// composes modules.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "estimator/models/blocks/layer.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/ops/activation.h"

namespace memfathom {

// What the makers of image models share.
struct ImageContext {
  Builder& builder;
  const ModelSettings& settings;

  // The job's dropout where it gives one, else the model's own.
  double dropout(double own) const { return settings.dropout.value_or(own); }
};

struct ConvSpec {
  std::int64_t in = 0, out = 0;
  std::int64_t kernel = 3, stride = 1, padding = 0;
  std::int64_t groups = 1;
  bool bias = false;
  std::optional<std::int64_t> kernel_width, stride_width, padding_width;  // absent: as the height's
};

Layer conv_layer(const ImageContext& context, std::string_view name, const ConvSpec& cfg);
Layer batch_norm_layer(const ImageContext& context, std::string_view name, std::int64_t features,
                       double eps = 1e-5);
Layer linear_layer(const ImageContext& context, std::string_view name, std::int64_t in,
                   std::int64_t out);
Layer activation_layer(Activation activation, bool in_place = true);
Layer dropout_layer(double p);
// nn.Dropout(inplace=True): the factors are kept in the input's type, not as a mask.
Layer dropout_in_place_layer(double p);
Layer max_pool_layer(std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0,
                     bool ceil_mode = false);
Layer average_pool_layer(std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0);

// Convolution without bias, batch norm, activation in place: torchvision's Conv2dNormActivation
// with its own padding.
Layer conv_norm_layer(const ImageContext& context, std::string_view name, ConvSpec cfg,
                      Activation activation, double eps = 1e-5);

Layer sequential(std::vector<Layer> layers);

// One of the model's repeated blocks: run as a checkpointed segment where the job asks for it.
Layer block_layer(const ImageContext& context, Layer block);

// Global average, flattened: [N, C, H, W] to [N, C].
Tensor global_average(const Tensor& x);

// torchvision's and timm's stochastic depth by rows: a number per sample, nothing in evaluation.
Tensor stochastic_depth(const Tensor& x, double p);

// The nearest multiple of 8 (of `divisor`) that is not more than a tenth below `value`.
std::int64_t divisible_channels(double value, std::int64_t divisor = 8);

}  // namespace memfathom
