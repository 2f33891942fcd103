#include "estimator/models/families/multimodal/qwen_vl/qwen_vision_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "estimator/models/blocks/config_reader.h"

namespace memfathom {
namespace {

constexpr std::int64_t kDefaultSide = 448;
constexpr std::int64_t kMaxPixels = 1 << 10;  // of a patch
constexpr std::int64_t kLargestSide = 1 << 16;

void read_first(const Node& vision, QwenVisionConfig& cfg) {
  cfg.hidden = count_or(vision, {"embed_dim"}, 1280);
  cfg.output = count_or(vision, {"hidden_size"}, 3584);
  cfg.layers = count_or(vision, {"depth"}, 32, kMaxLayers);
  cfg.ffn = std::llround(static_cast<double>(cfg.hidden) * number_or(vision, {"mlp_ratio"}, 4));
  cfg.activation = activation_or(vision, {"hidden_act"}, "quick_gelu");
}

void read_second(const Node& vision, QwenVisionConfig& cfg) {
  cfg.hidden = count_or(vision, {"hidden_size"}, 3584);
  cfg.output = count_or(vision, {"out_hidden_size"}, 3584);
  cfg.layers = count_or(vision, {"depth"}, 32, kMaxLayers);
  cfg.ffn = count_or(vision, {"intermediate_size"}, 3420);
  cfg.activation = activation_or(vision, {"hidden_act"}, "silu");
  cfg.norm = NormKind::kRms;
  cfg.gated = true;
  cfg.window = count_or(vision, {"window_size"}, 112);
  const Node* whole = find_any(vision, {"fullatt_block_indexes"});
  cfg.whole =
      whole != nullptr ? whole->as_ints(0, kMaxLayers) : std::vector<std::int64_t>{7, 15, 23, 31};
}

void read_third(const Node& vision, QwenVisionConfig& cfg) {
  cfg.hidden = count_or(vision, {"hidden_size"}, 1152);
  cfg.output = count_or(vision, {"out_hidden_size"}, 3584);
  cfg.layers = count_or(vision, {"depth"}, 27, kMaxLayers);
  cfg.ffn = count_or(vision, {"intermediate_size"}, 4304);
  cfg.activation = activation_or(vision, {"hidden_act"}, "gelu_pytorch_tanh");
  cfg.patch_bias = true;
  cfg.positions = count_or(vision, {"num_position_embeddings"}, 2304);
  const Node* deeper = find_any(vision, {"deepstack_visual_indexes"});
  cfg.deeper =
      deeper != nullptr ? deeper->as_ints(0, kMaxLayers) : std::vector<std::int64_t>{8, 16, 24};
  cfg.first = "linear_fc1";
  cfg.second = "linear_fc2";
}

}  // namespace

QwenVisionConfig read_qwen_vision(const Node& config) {
  const Node none = Node::map();
  const Node* found = find_any(config, {"vision_config"});
  const Node& vision = found != nullptr ? *found : none;
  const std::string& type = config.at("model_type").as_string();
  QwenVisionConfig cfg;
  if (type == "qwen2_vl") {
    read_first(vision, cfg);
  } else if (type == "qwen2_5_vl") {
    read_second(vision, cfg);
  } else {
    read_third(vision, cfg);
  }
  cfg.heads = count_or(vision, {"num_heads"}, 16);
  require_divides(vision, {"num_heads"}, cfg.heads, cfg.hidden, "the tower's width");
  if (cfg.head_size() % 4 != 0)
    vision.refuse("its heads must be a multiple of 4 wide, half for height and half for width");
  cfg.channels = count_or(vision, {"in_channels", "in_chans"}, 3, kMaxPixels);
  cfg.patch = count_or(vision, {"patch_size"}, cfg.positions > 0 ? 16 : 14, kMaxPixels);
  cfg.frames = count_or(vision, {"temporal_patch_size"}, 2, kMaxPixels);
  cfg.merge = count_or(vision, {"spatial_merge_size"}, 2, kMaxPixels);
  return cfg;
}

QwenGrid read_qwen_grid(const QwenVisionConfig& cfg, const ModelSettings& settings) {
  const auto patches = [&](std::int64_t pixels) {
    const std::int64_t side = cfg.patch * cfg.merge;
    const std::int64_t given = pixels > 0 ? pixels : kDefaultSide;
    if (given > kLargestSide)
      throw Error(ErrorKind::kInput,
                  fmt::format("training.image_size has a side of {} pixels; {} are the most here",
                              given, kLargestSide));
    return std::max<std::int64_t>(1, (given + side / 2) / side) * cfg.merge;
  };
  return {patches(settings.image_height), patches(settings.image_width)};
}

std::vector<std::int64_t> window_lengths(const QwenVisionConfig& cfg, const QwenGrid& grid) {
  const std::int64_t side = std::max<std::int64_t>(1, cfg.window / cfg.merge / cfg.patch);
  const std::int64_t height = grid.height / cfg.merge;
  const std::int64_t width = grid.width / cfg.merge;
  std::vector<std::int64_t> lengths;
  for (std::int64_t y = 0; y < height; y += side) {
    for (std::int64_t x = 0; x < width; x += side)
      lengths.push_back(std::min(side, height - y) * std::min(side, width - x) * cfg.unit());
  }
  return lengths;
}

}  // namespace memfathom
