// Flux blocks: the two kinds of block in diffusers' Flux transformer.
#pragma once

#include <cstdint>
#include <functional>

#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

struct FluxConfig {
  std::int64_t heads = 24, head_size = 128, layers = 19, single_layers = 38;
  std::int64_t in_channels = 64, out_channels = 64, text_size = 4096, pooled_size = 768;
  bool guidance = false;

  std::int64_t width() const { return heads * head_size; }
};

// The image's tokens and the text's.
struct FluxStreams {
  Tensor image, text;
};

// What all blocks of a pass are given; the tables turn text and image alike.
struct FluxPass {
  Tensor time, cos, sin;
};

using FluxBlock = std::function<FluxStreams(const FluxStreams&, const FluxPass&)>;

// Weights of their own for both streams, one attention over both.
FluxBlock make_flux_double_block(Builder& builder, const FluxConfig& cfg,
                                 const ModelSettings& settings);
// One stream of text and image, attention and MLP side by side.
FluxBlock make_flux_single_block(Builder& builder, const FluxConfig& cfg,
                                 const ModelSettings& settings);

}  // namespace memfathom
