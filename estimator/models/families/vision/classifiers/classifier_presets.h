// Classifier presets: torchvision's and timm's models by name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "estimator/models/blocks/image_parts.h"
#include "estimator/models/blocks/model_family.h"

namespace memfathom {

struct ClassifierPreset {
  std::string_view name;
  std::int64_t parameters;  // with 1000 classes
  std::string_view description;
  std::int64_t image_size;  // unless the job gives one
  bool fixed_size;          // other sizes do not fit the model's position table
  Layer (*make)(const ImageContext& context, std::int64_t classes, std::int64_t image_size);
  LoraTargets lora_targets = FamilyTraits{}.lora_targets;
};

std::span<const ClassifierPreset> classifier_presets();

}  // namespace memfathom
