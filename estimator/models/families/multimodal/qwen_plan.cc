#include "estimator/models/families/multimodal/qwen_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "estimator/models/blocks/config_reader.h"

namespace memfathom {
namespace {

constexpr std::int64_t kUsualSide = 448;
constexpr std::int64_t kMostPixels = 1 << 10;  // of a patch
constexpr std::int64_t kLargestSide = 1 << 16;

void read_first(const Node& vision, QwenVisionPlan& plan) {
  plan.hidden = count_or(vision, {"embed_dim"}, 1280);
  plan.output = count_or(vision, {"hidden_size"}, 3584);
  plan.layers = count_or(vision, {"depth"}, 32, kMostLayers);
  plan.ffn = std::llround(static_cast<double>(plan.hidden) * number_or(vision, {"mlp_ratio"}, 4));
  plan.activation = activation_or(vision, {"hidden_act"}, "quick_gelu");
}

void read_second(const Node& vision, QwenVisionPlan& plan) {
  plan.hidden = count_or(vision, {"hidden_size"}, 3584);
  plan.output = count_or(vision, {"out_hidden_size"}, 3584);
  plan.layers = count_or(vision, {"depth"}, 32, kMostLayers);
  plan.ffn = count_or(vision, {"intermediate_size"}, 3420);
  plan.activation = activation_or(vision, {"hidden_act"}, "silu");
  plan.norm = NormKind::kRms;
  plan.gated = true;
  plan.window = count_or(vision, {"window_size"}, 112);
  const Node* whole = find_any(vision, {"fullatt_block_indexes"});
  plan.whole =
      whole != nullptr ? whole->as_ints(0, kMostLayers) : std::vector<std::int64_t>{7, 15, 23, 31};
}

void read_third(const Node& vision, QwenVisionPlan& plan) {
  plan.hidden = count_or(vision, {"hidden_size"}, 1152);
  plan.output = count_or(vision, {"out_hidden_size"}, 3584);
  plan.layers = count_or(vision, {"depth"}, 27, kMostLayers);
  plan.ffn = count_or(vision, {"intermediate_size"}, 4304);
  plan.activation = activation_or(vision, {"hidden_act"}, "gelu_pytorch_tanh");
  plan.patch_bias = true;
  plan.positions = count_or(vision, {"num_position_embeddings"}, 2304);
  const Node* deeper = find_any(vision, {"deepstack_visual_indexes"});
  plan.deeper =
      deeper != nullptr ? deeper->as_ints(0, kMostLayers) : std::vector<std::int64_t>{8, 16, 24};
  plan.first = "linear_fc1";
  plan.second = "linear_fc2";
}

}  // namespace

QwenVisionPlan read_qwen_vision(const Node& config) {
  const Node none = Node::map();
  const Node* found = find_any(config, {"vision_config"});
  const Node& vision = found != nullptr ? *found : none;
  const std::string& type = config.at("model_type").as_string();
  QwenVisionPlan plan;
  if (type == "qwen2_vl") {
    read_first(vision, plan);
  } else if (type == "qwen2_5_vl") {
    read_second(vision, plan);
  } else {
    read_third(vision, plan);
  }
  plan.heads = count_or(vision, {"num_heads"}, 16);
  require_divides(vision, {"num_heads"}, plan.heads, plan.hidden, "the tower's width");
  if (plan.head_size() % 4 != 0)
    vision.refuse("its heads must be a multiple of 4 wide, half for height and half for width");
  plan.channels = count_or(vision, {"in_channels", "in_chans"}, 3, kMostPixels);
  plan.patch = count_or(vision, {"patch_size"}, plan.positions > 0 ? 16 : 14, kMostPixels);
  plan.frames = count_or(vision, {"temporal_patch_size"}, 2, kMostPixels);
  plan.merge = count_or(vision, {"spatial_merge_size"}, 2, kMostPixels);
  return plan;
}

QwenGrid read_qwen_grid(const QwenVisionPlan& plan, const ModelSettings& settings) {
  const auto patches = [&](std::int64_t pixels) {
    const std::int64_t side = plan.patch * plan.merge;
    const std::int64_t given = pixels > 0 ? pixels : kUsualSide;
    if (given > kLargestSide)
      throw Error(ErrorKind::kInput,
                  fmt::format("training.image_size has a side of {} pixels; {} are the most here",
                              given, kLargestSide));
    return std::max<std::int64_t>(1, (given + side / 2) / side) * plan.merge;
  };
  return {patches(settings.image_height), patches(settings.image_width)};
}

std::vector<std::int64_t> window_lengths(const QwenVisionPlan& plan, const QwenGrid& grid) {
  const std::int64_t side = std::max<std::int64_t>(1, plan.window / plan.merge / plan.patch);
  const std::int64_t height = grid.height / plan.merge;
  const std::int64_t width = grid.width / plan.merge;
  std::vector<std::int64_t> lengths;
  for (std::int64_t y = 0; y < height; y += side) {
    for (std::int64_t x = 0; x < width; x += side)
      lengths.push_back(std::min(side, height - y) * std::min(side, width - x) * plan.unit());
  }
  return lengths;
}

}  // namespace memfathom
