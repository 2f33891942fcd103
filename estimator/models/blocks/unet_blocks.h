// U-Net blocks: the residual block, the attentions and the spatial transformer of diffusers'
// U-Nets.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "estimator/models/blocks/image_parts.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/feed_forward.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/attention.h"

namespace memfathom {

struct UNetStyle {
  std::int64_t groups = 32;
  double eps = 1e-5;
  double dropout = 0;
  std::int64_t time_size = 0;
  Activation activation = Activation::kSilu;
  bool scale_shift = false;  // the time scales and shifts the second norm instead of being added
};

// GN, SiLU, conv, + time, GN, SiLU, conv, + shortcut. Without a time_size there is no time.
struct ResnetBlock {
  GroupNorm norm1, norm2;
  Layer conv1, conv2, shortcut;
  Linear time;
  double dropout = 0;
  Activation activation = Activation::kSilu;
  bool scale_shift = false;

  Tensor operator()(const Tensor& input, const Tensor& temb) const;
};

std::shared_ptr<const ResnetBlock> make_resnet_block(const ImageContext& context,
                                                     const UNetStyle& style, std::int64_t in,
                                                     std::int64_t out);

// Half and twice the size by a convolution. Without padding the image is padded at its far ends
// first.
Layer make_downsample(const ImageContext& context, std::int64_t channels, std::int64_t padding);
Layer make_upsample(const ImageContext& context, std::int64_t channels);

// diffusers' Attention on an image, with its own group norm and the input added (UNet2DModel), or
// on tokens.
struct DiffusionAttention {
  GroupNorm norm;
  bool on_image = false;
  Linear q, k, v, out;
  std::int64_t heads = 1;
  AttentionImplementation implementation = AttentionImplementation::kAuto;

  // `context` is what keys and values are made of; undefined: the input itself.
  Tensor operator()(const Tensor& input, const Tensor& context = {}) const;
};

DiffusionAttention make_image_attention(const ImageContext& context, const UNetStyle& style,
                                        std::int64_t channels, std::int64_t heads);

struct SpatialTransformerConfig {
  std::int64_t channels = 0, heads = 1, layers = 1, cross_size = 0;
  bool linear_projection = false;
};

// Transformer2DModel: self-attention, cross-attention and GEGLU over the positions of an image.
class SpatialTransformer {
 public:
  SpatialTransformer(const ImageContext& context, const UNetStyle& style,
                     const SpatialTransformerConfig& cfg);
  Tensor operator()(const Tensor& input, const Tensor& text) const;

 private:
  struct UNetBlock {
    LayerNorm norm1, norm2, norm3;
    DiffusionAttention self, cross;
    Linear up, down;
    Tensor operator()(const Tensor& input, const Tensor& text) const;
  };

  bool linear_ = false;
  ModelSettings settings_;
  GroupNorm norm_;
  Layer conv_in_, conv_out_;
  Linear linear_in_, linear_out_;
  std::vector<std::shared_ptr<const UNetBlock>> blocks_;
};

}  // namespace memfathom
