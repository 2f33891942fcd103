// CogVideoX blocks: the plan of diffusers' CogVideoX transformer and the block it repeats.
#pragma once

#include <cstdint>
#include <functional>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"

namespace memfathom {

struct CogVideoXConfig {
  std::int64_t heads, head_size, in_channels, out_channels, time_size, text_size, layers,
      text_length, patch, patch_t;
  std::int64_t sample_width, sample_height, sample_frames, compression;
  bool attention_bias, patch_bias, rotary, learned_positions, flip;
  double dropout, norm_eps;

  std::int64_t width() const { return heads * head_size; }
  std::int64_t tokens(std::int64_t frames, std::int64_t h, std::int64_t w) const {
    return (patch_t > 0 ? frames / patch_t : frames) * (h / patch) * (w / patch);
  }
};

CogVideoXConfig read_cogvideox_config(const Node& config, const ModelSettings& settings);

// What a block passes on: the video's tokens and the text's.
struct CogVideoXStreams {
  Tensor video, text;
};

// What all blocks of a pass are given: the time's embedding, and the tables that turn the video's
// queries and keys where the model has them.
struct CogVideoXPass {
  Tensor time, cos, sin;
};

using CogVideoXBlock =
    std::function<CogVideoXStreams(const CogVideoXStreams&, const CogVideoXPass&)>;

CogVideoXBlock make_cogvideox_block(Builder& builder, const CogVideoXConfig& cfg,
                                    const ModelSettings& settings);

}  // namespace memfathom
