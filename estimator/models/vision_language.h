// Vision-language models: an image tower whose tokens stand among a language model's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

// llava, gemma3, paligemma, qwen2_vl, qwen2_5_vl, qwen3_vl with towers and language models that are
// known here.
bool is_vision_language(const Node& config);

// The tokens of settings.num_images images are part of sequence_length. What had to be assumed of
// the images is appended to `assumptions`.
std::unique_ptr<Network> make_vision_language(Builder& builder, const Node& config,
                                              const ModelSettings& settings,
                                              std::vector<std::string>& assumptions);

}  // namespace memfathom
