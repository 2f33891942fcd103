// Video blocks: causal convolutions, norms and residual blocks of CogVideoX's autoencoder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "estimator/models/blocks/image_parts.h"
#include "kernels/framework/layers/normalization.h"

namespace memfathom {

// The last frames that each convolution saw: a video is read a few frames at a time.
struct FrameCaches {
  std::unordered_map<const void*, Tensor> before, now;

  // The frames of this pass are those before the next.
  void advance();
};

// A 3-D convolution that sees no frame before its time: those before come from the cache, or are
// copies of the first.
struct CausalConv {
  Tensor weight, bias;

  Tensor operator()(const Tensor& x, FrameCaches& caches) const;
};
CausalConv make_causal_conv(Builder& builder, std::string_view name, std::int64_t in,
                            std::int64_t out, std::int64_t kernel);

// A group norm whose result the latents scale and shift, where there are latents.
struct VideoNorm {
  GroupNorm norm;
  std::optional<CausalConv> scale, shift;

  Tensor operator()(const Tensor& x, const Tensor& latents, FrameCaches& caches) const;
};
VideoNorm make_video_norm(Builder& builder, std::string_view name, std::int64_t groups,
                          std::int64_t channels, std::int64_t latents);

struct VideoResnet {
  VideoNorm norm1, norm2;
  CausalConv conv1, conv2;
  Tensor shortcut_weight, shortcut_bias;
  double dropout = 0;

  Tensor operator()(const Tensor& input, const Tensor& latents, FrameCaches& caches) const;
};

// Residual blocks, then half or twice the size where there is a convolution for it.
struct VideoStage {
  std::vector<std::shared_ptr<const VideoResnet>> resnets;
  Layer down, up;  // 2-D convolutions over the frames
  bool changes_time = false;

  Tensor operator()(const Tensor& input, const Tensor& latents, FrameCaches& caches) const;
};

struct VideoStageConfig {
  std::int64_t in = 0, out = 0, resnets = 1, groups = 32;
  std::int64_t latents = 0;  // > 0: norms that the latents scale and shift
};
VideoStage make_video_stage(const ImageContext& context, const VideoStageConfig& cfg);

}  // namespace memfathom
