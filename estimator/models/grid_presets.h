// Grid presets: models over images, videos and fields by name; torchvision's and timm's classifiers
// have no configuration, the others only the keys that differ from their library's defaults.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/document.h"
#include "estimator/models/blocks/model_family.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"

namespace memfathom {

struct GridPreset {
  std::string_view name;
  std::int64_t parameters;
  std::string_view description;
};

std::span<const GridPreset> grid_presets();

// The keys of such a preset that differ from its library's defaults; nothing if it has no
// configuration at all.
std::optional<Node> partial_preset_config(std::string_view normalized_name);

// A preset by its normalized name; `model` is the job's, for num_classes. nullptr if there is none.
std::unique_ptr<Network> make_grid_preset(Builder& builder, std::string_view normalized_name,
                                          const Node& model, const ModelSettings& settings);

// The modules that PEFT would adapt in a grid preset; the usual ones if there is none of that name.
LoraTargets preset_lora_targets(std::string_view name);

}  // namespace memfathom
