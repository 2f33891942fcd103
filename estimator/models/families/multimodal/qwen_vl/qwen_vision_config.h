// QwenVisionConfig: what tells the vision towers of Qwen2-VL, Qwen2.5-VL and Qwen3-VL apart.
#pragma once

#include <cstdint>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/norm_layer.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/ops/activation.h"

namespace memfathom {

struct QwenVisionConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, ffn = 0, output = 0;
  std::int64_t channels = 3, patch = 14, frames = 2, merge = 2;
  NormKind norm = NormKind::kLayer;
  Activation activation = Activation::kQuickGelu;
  bool gated = false;                // 2.5: gate, up and down
  bool patch_bias = false;           // 3
  std::int64_t positions = 0;        // 3: rows of a learned table; 0: none
  std::int64_t window = 0;           // 2.5: pixels of a window's side; 0: all layers see all
  std::vector<std::int64_t> whole;   // 2.5: the layers that see all
  std::vector<std::int64_t> deeper;  // 3: layers whose tokens go to the language model too
  const char* first = "fc1";
  const char* second = "fc2";

  std::int64_t head_size() const { return hidden / heads; }
  std::int64_t unit() const { return merge * merge; }  // patches to a token
};

QwenVisionConfig read_qwen_vision(const Node& config);

// How one image is cut: patches to a side, and the lengths that attention sees at a time.
struct QwenGrid {
  std::int64_t height = 0, width = 0;

  std::int64_t patches() const { return height * width; }
};

// The job's image_size, brought to whole tokens as the processor does; 448 x 448 if absent.
QwenGrid read_qwen_grid(const QwenVisionConfig& cfg, const ModelSettings& settings);

// Patches of each window of one image; those at the edges are smaller.
std::vector<std::int64_t> window_lengths(const QwenVisionConfig& cfg, const QwenGrid& grid);

}  // namespace memfathom
