// Classifiers: the families of torchvision and timm, image [N, 3, H, W] to logits [N, classes].
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "estimator/models/blocks/image_parts.h"

namespace memfathom {

struct ResNetConfig {
  bool bottleneck = false;
  std::array<std::int64_t, 4> blocks{};
  std::int64_t groups = 1, width_per_group = 64;
};
Layer make_resnet(const ImageContext& context, std::int64_t classes, const ResNetConfig& cfg);

// Widths of the convolutions; 0 is a max pooling.
Layer make_vgg(const ImageContext& context, std::int64_t classes,
               std::span<const std::int64_t> widths, bool batch_norm);
Layer make_alexnet(const ImageContext& context, std::int64_t classes);

struct DenseNetConfig {
  std::int64_t growth = 32, stem = 64;
  std::array<std::int64_t, 4> blocks{};
};
Layer make_densenet(const ImageContext& context, std::int64_t classes, const DenseNetConfig& cfg);

Layer make_squeezenet(const ImageContext& context, std::int64_t classes, bool first_version);

// With the auxiliary classifiers that torchvision makes and scripts train with.
Layer make_googlenet(const ImageContext& context, std::int64_t classes);
Layer make_inception_v3(const ImageContext& context, std::int64_t classes);

Layer make_mobilenet_v2(const ImageContext& context, std::int64_t classes);
Layer make_mobilenet_v3(const ImageContext& context, std::int64_t classes, bool large);

struct EfficientNetConfig {
  double width = 1, depth = 1;
  double dropout = 0.2;
};
Layer make_efficientnet(const ImageContext& context, std::int64_t classes,
                        const EfficientNetConfig& cfg);

enum class EfficientNetSize : std::uint8_t { kSmall, kMedium, kLarge };
Layer make_efficientnet_v2(const ImageContext& context, std::int64_t classes,
                           EfficientNetSize size);

struct ConvNextConfig {
  std::int64_t width = 96;       // of the first stage; doubled at each next
  std::int64_t third_stage = 9;  // blocks; the other stages have three
  double stochastic_depth = 0.1;
};
Layer make_convnext(const ImageContext& context, std::int64_t classes, const ConvNextConfig& cfg);

struct SwinConfig {
  std::int64_t width = 96, heads = 3;  // of the first stage; doubled at each next
  std::int64_t third_stage = 6;        // blocks; the other stages have two
  double stochastic_depth = 0.2;
};
Layer make_swin(const ImageContext& context, std::int64_t classes, const SwinConfig& cfg);

struct VitConfig {
  std::int64_t width = 768, depth = 12, heads = 12, patch = 16;
  std::int64_t image_size = 224;
};
// timm's: fused qkv, pre-norm blocks, class token.
Layer make_vit(const ImageContext& context, std::int64_t classes, const VitConfig& cfg);
// timm's MLP-Mixer: tokens mixed, then channels.
Layer make_mixer(const ImageContext& context, std::int64_t classes, const VitConfig& cfg);
// torchvision's: nn.MultiheadAttention.
Layer make_torchvision_vit(const ImageContext& context, std::int64_t classes, const VitConfig& cfg);

}  // namespace memfathom
